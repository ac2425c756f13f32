"""The page's addresses: what each one answers. All of them stand behind the Guard."""

from __future__ import annotations

import json
import secrets
import urllib.parse
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from stair.errors import StairError
from stair.report import source
from stair.review import pages, taking
from stair.review.desk import Desk
from stair.review.forms import MOST_FIELDS, Form, clause_of
from stair.review.jobs import Job
from stair.review.log import NOBODY, Event
from stair.review.revision import Group, Now
from stair.review.session import Review
from stair.review.setup import columns_of, number, wanted_of, whole
from stair.review.wishing import wishes_of
from stair.rules.clauses import Clause

WHO: Final = "stair-who"  # the cookie that tells one browser from another
MOST_UPLOADED: Final = 500_000_000
LONGEST_SEARCH: Final = 200

Handler: TypeAlias = Callable[[Request, Form], Response]


def make_app(desk: Desk, *, most_upload: int = MOST_UPLOADED) -> Starlette:
    """The app without its guard. Handlers run in threads: they count, read files and wait."""
    page = _Page(desk, most_upload)
    routes = [
        ("/", "GET", page.home),
        ("/side", "GET", page.side),
        ("/group/{key}", "GET", page.group),
        ("/group/{key}/rows", "GET", page.rows),
        ("/group/{key}/verdict", "POST", page.decide),
        ("/group/{key}/edit", "GET", page.edit),
        ("/group/{key}/preview", "POST", page.preview),
        ("/group/{key}/edit", "POST", page.save_edit),
        ("/row/{row}", "POST", page.decide_row),
        ("/undo", "POST", page.undo),
        ("/redo", "POST", page.redo),
        ("/tune", "GET", page.tune),
        ("/frontier", "POST", page.find_frontier),
        ("/learn", "POST", page.learn),
        ("/relearn", "POST", page.relearn),
        ("/job", "GET", page.job),
        ("/job/stop", "POST", page.stop_job),
        ("/exceptions", "GET", page.exceptions),
        ("/exceptions", "POST", page.take_exceptions),
        ("/exceptions/find", "POST", page.find_exceptions),
        ("/exceptions/remove", "POST", page.remove_exception),
        ("/take", "GET", page.take),
        ("/take/rows.{kind}", "GET", page.take_rows),
        ("/take/rules", "GET", page.take_rules),
        ("/take/rulebook.json", "GET", page.take_rulebook),
        ("/take/report.html", "GET", page.take_report),
        ("/start", "GET", page.start),
        ("/choose", "POST", page.choose),
        ("/open", "POST", page.open),
        ("/static/{name}", "GET", page.static),
    ]
    return Starlette(
        routes=[
            *(Route(path, _in_thread(handler), methods=[way]) for path, way, handler in routes),
            Route("/upload", page.upload, methods=["POST"]),
        ]
    )


def _in_thread(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler with the form it was sent; what is wrong is said in one sentence."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            form = await _form(request)
            response = await run_in_threadpool(handler, request, form)
        except StairError as error:
            response = _problem(str(error), 503 if isinstance(error, _NotYet) else 422)
        if request.cookies.get(WHO) != _who(request):
            response.set_cookie(WHO, _who(request), max_age=10**8, httponly=True, samesite="strict")
        return response

    return answer


async def _form(request: Request) -> Form:
    if request.method != "POST":
        return ImmutableMultiDict()
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return ImmutableMultiDict(
            urllib.parse.parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        )
    except ValueError:
        raise StairError(f"the form has more than {MOST_FIELDS:,} fields") from None


def _who(request: Request) -> str:
    """The browser's own name. Made once for each request that comes without one."""
    if not hasattr(request.state, "who"):
        given = request.cookies.get(WHO, "")[:64]
        request.state.who = given if given not in ("", NOBODY) else secrets.token_hex(8)
    return str(request.state.who)


def _html(text: str, **headers: str) -> Response:
    return HTMLResponse(text, headers={k.replace("_", "-"): v for k, v in headers.items()})


class _NotYet(StairError):  # noqa: N818 - nothing is wrong
    """Asked for what is just being opened; a page that asks again gets it."""


def _problem(sentence: str, status: int = 422) -> Response:
    """Shown by the page where the person looks; nothing else on it changes."""
    said = json.dumps({"stair-problem": sentence})
    text = pages.render("problem.html", sentence=sentence)
    return HTMLResponse(text, status, headers={"HX-Trigger": said, "HX-Reswap": "none"})


class _Page:
    """The handlers. They hold nothing of their own: all state is on the desk and in the store."""

    def __init__(self, desk: Desk, most_upload: int) -> None:
        self.desk = desk
        self.most_upload = most_upload

    # --- what is open -------------------------------------------------------------------------

    def _open(self) -> Review:
        if self.desk.review is None:
            raise self._nothing()
        return self.desk.review

    def _now(self, review: Review) -> Now:
        now = review.now()
        if now is None:
            raise self._nothing()
        return now

    def _nothing(self) -> StairError:
        if self.desk.jobs.is_busy:
            return _NotYet("the table is still being opened; try again in a moment")
        return StairError("nothing is open yet; load the page again")

    def _review(self) -> tuple[Review, Now]:
        review = self._open()
        return review, self._now(review)

    def _group_of(self, review: Review, request: Request) -> tuple[Now, Group]:
        now = self._now(review)
        group = review.group(now, request.path_params["key"])
        if group is None:
            raise StairError("this rule is not known here; load the page again")
        return now, group

    def _group(self, request: Request) -> tuple[Review, Now, Group]:
        review = self._open()
        return review, *self._group_of(review, request)

    # --- pages --------------------------------------------------------------------------------

    def home(self, request: Request, _form: Form) -> Response:
        review = self.desk.review
        now = None if review is None else review.now()
        if review is None or now is None:
            if self.desk.jobs.current is None:
                return RedirectResponse("/start", 303)
            return _html(pages.render("wait.html", job=self.desk.jobs.current,
                                      can_choose=self.desk.folder is not None,
                                      wanted=self.desk.wanted))  # fmt: skip
        group = self._place(review, now, _who(request))
        shown = pages.panel(review, now, group) if group else pages.tune(self.desk, review, now)
        return _html(
            pages.render(
                "review.html",
                review=review,
                now=now,
                side=pages.side_of(review, now),
                panel=shown,
                current=group.key if group else "",
                oob=False,
                summary=now.revision.summary,
                n_outliers=pages.n_outliers(review),
                names=pages.names_of(now.revision.finds_outliers),
                headline=now.revision.headline,
                can_choose=self.desk.folder is not None,
                job=self.desk.jobs.current,
            )
        )

    def _place(self, review: Review, now: Now, who: str) -> Group | None:
        """Where the person was, else the first rule without a verdict."""
        groups = now.revision.groups
        place = review.store.place(who)
        found = next((g for g in groups if g.key == place), None)
        return found or _next_open(review, now, None) or next(iter(groups), None)

    def side(self, request: Request, _form: Form) -> Response:
        review, now = self._review()
        since = request.query_params.get("since", "")
        busy = request.query_params.get("current", "")
        if since == str(now.state.last):
            return Response(status_code=204)
        return _html(self._side(review, now, busy))

    def _side(self, review: Review, now: Now, current: str, *, oob: bool = False) -> str:
        return pages.render(
            "side.html", side=pages.side_of(review, now), current=current, oob=oob,
            names=pages.names_of(now.revision.finds_outliers), headline=now.revision.headline,
            can_choose=self.desk.folder is not None,
        )  # fmt: skip

    def _both(self, review: Review, now: Now, group: Group, **said: str) -> Response:
        """A panel for the middle and the list beside it, in one answer."""
        panel = pages.panel(review, now, group)
        trigger = json.dumps({f"stair-{name}": text for name, text in said.items()})
        return _html(panel + self._side(review, now, group.key, oob=True), HX_Trigger=trigger)

    def group(self, request: Request, _form: Form) -> Response:
        review, now, group = self._group(request)
        review.store.put_place(_who(request), group.key)
        return _html(pages.panel(review, now, group) + self._side(review, now, group.key, oob=True))

    def rows(self, request: Request, _form: Form) -> Response:
        review, now, group = self._group(request)
        query = request.query_params
        asked = pages.Listing(
            query.get("sort", ""),
            query.get("descending", "") == "1",
            query.get("search", "")[:LONGEST_SEARCH],
        )
        page = review.rows.page(
            group.rows, sort=asked.sort or None, descending=asked.descending,
            start=whole(query.get("start", "0"), "start"), size=pages.PAGE_SIZE,
            search=asked.search, first=pages.own_columns(now, group),
        )  # fmt: skip
        return _html(pages.rows(review, now, group, page, asked))

    # --- verdicts -----------------------------------------------------------------------------

    def decide(self, request: Request, form: Form) -> Response:
        review, verdict, following = self._open(), form.get("verdict", ""), None
        with review.store.writing():  # all that a click does is one transaction
            before, group = self._group_of(review, request)
            review.decide(_who(request), group, verdict, form.get("note", ""), form.get("once", ""))
            now = self._now(review)
            if verdict != "none" and before.verdict(group.key) is None:
                following = _next_open(review, now, group)
            if following is not None:
                review.store.put_place(_who(request), following.key)
        names = pages.names_of(now.revision.finds_outliers)
        said = names[verdict].lower() if verdict in names else "verdict taken back"
        return self._both(
            review, now, following or group, said=f"{pages.name_of(now, group)}: {said}."
        )

    def decide_row(self, request: Request, form: Form) -> Response:
        review, row = self._open(), whole(request.path_params["row"], "row")
        with review.store.writing():
            seen_in = review.group(self._now(review), form.get("current", ""))
            review.decide_rows(_who(request), [row], form.get("verdict", ""), form.get("note", ""),
                               form.get("once", ""), seen_in)  # fmt: skip
            now = self._now(review)
        cell = pages.render(
            "mark.html", row=row, mark=pages.mark_of(now, row),
            names=pages.names_of(now.revision.finds_outliers),
        )  # fmt: skip
        current = form.get("current", "")
        return _html(cell + self._side(review, now, current, oob=True))

    def undo(self, request: Request, form: Form) -> Response:
        undo = self._open().store.undo
        return self._moved(request, form, undo, "Undone", "There is nothing to undo.")

    def redo(self, request: Request, form: Form) -> Response:
        redo = self._open().store.redo
        return self._moved(request, form, redo, "Done again", "There is nothing to do again.")

    def _moved(
        self,
        request: Request,
        form: Form,
        turn: Callable[..., Event | None],
        did: str,
        nothing: str,
    ) -> Response:
        review = self._open()
        with review.store.writing():
            event = turn(_who(request), key=form.get("once", ""))
            if event is None:
                raise StairError(nothing)
            now = self._now(review)
        subject = event.subject if event.kind == "rule" else form.get("current", "")
        group = now.revision.find(subject) or next(iter(now.revision.groups), None)
        if group is None:
            return _html(pages.tune(self.desk, review, now) + self._side(review, now, "", oob=True))
        return self._both(review, now, group, said=f"{did}: {_in_words(now, event)}.")

    # --- edits --------------------------------------------------------------------------------

    def edit(self, request: Request, _form: Form) -> Response:
        _, now, group = self._present(request)
        forms = pages.edit_form(now.revision, group)
        return _html(pages.render("edit.html", group=group, forms=forms))

    def preview(self, request: Request, form: Form) -> Response:
        """As the person types: what is wrong with it stands where the answer would; also where the
        rule has just been changed while this was on its way."""
        try:
            review, now, group = self._present(request)
            clause, new = self._edited(now, group, form)
            changed = review.with_clause(now.revision, group, clause, new)
        except StairError as error:
            return _html(pages.render("problem.html", sentence=str(error)))
        return _html(
            pages.render("preview.html", preview=pages.preview(now.revision, group, changed))
        )

    def save_edit(self, request: Request, form: Form) -> Response:
        review = self._open()
        with review.store.writing():
            _, now, group = self._present(request)
            clause, new = self._edited(now, group, form)
            changed = review.edit(_who(request), group.key, clause, new)
            review.store.put_place(_who(request), changed.key)
            after = self._now(review)
        return self._both(review, after, changed, said="The rule was changed.")

    def _present(self, request: Request) -> tuple[Review, Now, Group]:
        review, now, group = self._group(request)
        present = now.revision.find(group.key)
        if present is None or present.number is None:
            raise StairError("this rule is not among the present ones, so it cannot be changed")
        return review, now, present

    def _edited(self, now: Now, group: Group, form: Form) -> tuple[int, Clause | None]:
        assert group.number is not None
        rule = now.revision.summary.rules.rules[group.number]
        clause = whole(form.get("clause", ""), "clause")
        if clause >= len(rule.clauses):
            raise StairError("the rule has no such clause; load the page again")
        if form.get("remove", ""):
            return clause, None
        old = rule.clauses[clause]
        return clause, clause_of(old, form, now.revision.given.values[old.feature])

    # --- learning -----------------------------------------------------------------------------

    def tune(self, _request: Request, _form: Form) -> Response:
        review, now = self._review()
        return _html(pages.tune(self.desk, review, now))

    def learn(self, request: Request, form: Form) -> Response:
        review = self._open()
        present = review.now()
        wished = wishes_of(form, {} if present is None else present.revision.settings)
        changes: dict[str, object] = {}
        if form.get("method", ""):
            changes["method"] = form.get("method", "")
        if form.get("wishes", "") and not form.get("floored", ""):
            changes["min_score"] = 0.0
        elif form.get("floor", ""):
            changes["min_score"] = number(form.get("floor", ""), "floor")
        if form.get("longest", ""):
            changes["max_rule_length"] = whole(form.get("longest", ""), "longest rule")
        return self._job(self.desk.learn(_who(request), changes | wished))

    def relearn(self, request: Request, _form: Form) -> Response:
        _, now = self._review()
        if not now.state.n_decisions:
            raise StairError("there is no verdict yet to learn from; judge a rule first")
        return self._job(self.desk.learn(_who(request), {}, relearn=True))

    def find_frontier(self, _request: Request, form: Form) -> Response:
        review, now = self._review()
        settings = {**now.revision.settings}
        if form.get("method", ""):
            settings["method"] = form.get("method", "")
        if form.get("longest", ""):
            settings["max_rule_length"] = whole(form.get("longest", ""), "longest rule")
        review.frontier = None
        job = self.desk.jobs.start(
            "Length against score",
            lambda say: review.find_frontier(settings, say),
            kind="frontier",
        )
        return self._job(job)

    def job(self, _request: Request, _form: Form) -> Response:
        return self._job(self.desk.jobs.current)

    def stop_job(self, _request: Request, _form: Form) -> Response:
        self.desk.jobs.cancel()
        return self._job(self.desk.jobs.current)

    def _job(self, job: Job | None) -> Response:
        text = pages.render("job.html", job=job)
        if job is None or job.is_done:  # None: another page has seen the end already
            self.desk.jobs.forget()
            return _html(text, HX_Trigger=json.dumps({"stair-ended": self._ended(job)}))
        return _html(text)

    def _ended(self, job: Job | None) -> dict[str, object]:
        """How a job ended: the rules there are now, where to go on, what became of verdicts."""
        found: dict[str, object] = {"error": job.error if job else ""}
        review = self.desk.review
        now = None if review is None else review.now()
        if review is not None and now is not None:
            group = _next_open(review, now, None) or next(iter(now.revision.groups), None)
            found["revision"], found["said"] = now.revision.event, pages.done(now, job)
            found["first"] = group.key if group else ""
            if job is not None and job.kind == "exceptions":
                found["panel"] = "/exceptions"
        return found

    # --- exceptions ---------------------------------------------------------------------------

    def exceptions(self, _request: Request, _form: Form) -> Response:
        review, now = self._review()
        return _html(pages.excepting(review, now))

    def find_exceptions(self, _request: Request, _form: Form) -> Response:
        """In the background; how it ended brings the page to what was found."""
        review, now = self._review()
        if not pages.alarms_of(review, now).left:
            raise StairError(
                "there is no false alarm that a rule calls an outlier; judge one first"
            )
        job = self.desk.jobs.start(
            "Looking for exceptions", review.find_exceptions, kind="exceptions"
        )
        return self._job(job)

    def take_exceptions(self, request: Request, _form: Form) -> Response:
        review = self._open()
        with review.store.writing():
            review.take_exceptions(_who(request))
            now = self._now(review)
        return self._excepted(review, now, "The exceptions are in use.")

    def remove_exception(self, request: Request, form: Form) -> Response:
        review = self._open()
        with review.store.writing():
            number = whole(form.get("number", ""), "number")
            review.remove_exception(_who(request), number)
            now = self._now(review)
        return self._excepted(review, now, "The exception was taken away.")

    def _excepted(self, review: Review, now: Now, said: str) -> Response:
        trigger = json.dumps({"stair-said": said})
        text = pages.excepting(review, now) + self._side(review, now, "", oob=True)
        return _html(text, HX_Trigger=trigger)

    # --- take away ----------------------------------------------------------------------------

    def take(self, _request: Request, _form: Form) -> Response:
        review, now = self._review()
        return _html(pages.taking(review, now))

    def take_rows(self, request: Request, _form: Form) -> Response:
        review, now = self._review()
        return taking.rows(review, now, str(request.path_params["kind"]))

    def take_rules(self, request: Request, _form: Form) -> Response:
        review, now = self._review()
        query = request.query_params
        return taking.rules(review, now, query.get("to", "json"), query.get("dialect", "duckdb"),
                            query.get("form", "query"))  # fmt: skip

    def take_rulebook(self, _request: Request, _form: Form) -> Response:
        review, now = self._review()
        return taking.rulebook(review, now)

    def take_report(self, _request: Request, _form: Form) -> Response:
        review, now = self._review()
        return taking.report(review, now)

    # --- the beginning ------------------------------------------------------------------------

    def start(self, _request: Request, _form: Form) -> Response:
        return _html(pages.start(self.desk, most=self.most_upload))

    def choose(self, _request: Request, form: Form) -> Response:
        path = self._folder_file(form.get("name", ""))
        columns, n_rows, guess = columns_of(path)
        return _html(pages.setup(form.get("name", ""), columns, n_rows, guess))

    def open(self, _request: Request, form: Form) -> Response:
        path = self._folder_file(form.get("name", ""))
        self.desk.open(wanted_of(path, form))
        return Response(status_code=204, headers={"HX-Redirect": "/"})

    def _folder_file(self, name: str) -> Path:
        if self.desk.folder is None:
            raise StairError("this page shows one file; start stair review without one")
        return self.desk.folder.find(name)

    async def upload(self, request: Request) -> Response:
        """The raw body of one file, with its name in the address."""
        name = request.query_params.get("name", "")
        try:
            if self.desk.folder is None:
                raise StairError("this page shows one file; start stair review without a file")
            path = await self.desk.folder.receive(name, request.stream(), self.most_upload)
        except StairError as error:
            return _problem(str(error))
        found = path.relative_to(self.desk.folder.root).as_posix()
        return Response(json.dumps({"name": found}), media_type="application/json")

    # --- files of the page itself -------------------------------------------------------------

    def static(self, request: Request, _form: Form) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response("no such file", 404)
        if name == "report.css":
            content = source("page.css").encode()
        else:
            content = resources.files("stair.review").joinpath("static", name).read_bytes()
        return Response(
            content, media_type=STATIC[name], headers={"Cache-Control": "private, max-age=60"}
        )


STATIC: Final = {
    "htmx.min.js": "text/javascript",
    "review.js": "text/javascript",
    "review.css": "text/css",
    "report.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def _next_open(review: Review, now: Now, after: Group | None) -> Group | None:
    """The next rule that is to judge, from a place on and then from the beginning. Rules in use
    that do as before need no verdict."""
    groups = now.revision.groups
    settled = [group for group in groups if pages.is_settled(review, now, group)]
    waiting = [g for g in groups if g.is_judged]
    at = next((k for k, g in enumerate(waiting) if after and g.key == after.key), -1)
    order = [*waiting[at + 1 :], *waiting[: max(at, 0)]]
    return next((g for g in order if now.verdict(g.key) is None and g not in settled), None)


def _in_words(now: Now, event: Event) -> str:
    names = pages.names_of(now.revision.finds_outliers)
    if event.kind == "rules":
        return f"the rules, {pages.CAUSES.get(event.text, event.text)}"
    said = names.get(event.verdict, "verdict taken back").lower()
    return f"{said} for " + (
        event.text if event.kind == "rule" else f"row {int(event.subject) + 1}"
    )
