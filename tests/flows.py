"""Network flows as raw as they come: ids that are nearly unique, addresses, ports, times, and about
eighty figures that have nothing to do with anything. One class of seven is 85% of them, and each of
the others was planted with a rule of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

NORMAL = "BENIGN"
# What was planted for each kind, by the columns that tell it apart.
PLANTED: dict[str, set[str]] = {
    "Botnet": {"Bwd Init Win Bytes", "Fwd Packets"},
    "DDoS": {"Flow Packets/s", "Protocol"},
    "PortScan": {"Flow Duration", "SYN Flag Count"},
    "Infiltration": {"Dst Port"},
    "Web Attack": {"Fwd Segment Size Min", "Dst Port"},
    "Heartbleed": {"Bwd Packet Length Max"},
}
SHARES = {"Botnet": 0.06, "DDoS": 0.035, "PortScan": 0.025, "Infiltration": 0.012,
          "Web Attack": 0.012, "Heartbleed": 0.006}  # fmt: skip
N_COLUMNS = 91


def flows(n: int = 6000, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """A table of flows with the column Label."""
    random = np.random.default_rng(seed)
    names = [NORMAL, *SHARES]
    share = [1 - sum(SHARES.values()), *SHARES.values()]
    label = np.array(names, dtype=object)[random.choice(len(names), n, p=share)]
    is_ = {name: label == name for name in names}

    def whole(low: float, sigma: float) -> np.ndarray[Any, Any]:
        return np.floor(random.lognormal(low, sigma, n)).astype(np.int64)

    port = random.choice([80, 443, 53, 22, 21, 8080], n, p=[0.3, 0.4, 0.2, 0.04, 0.03, 0.03])
    port = np.where(random.random(n) < 0.1, random.integers(1024, 65535, n), port)
    port[is_["Infiltration"]] = 444
    port[is_["Web Attack"]] = 80
    window = random.choice([-1, 0, 229, 235, 8192, 29200, 65535], n)
    packets = whole(1.2, 1.0) + 1
    bot = is_["Botnet"]
    window[bot], packets[bot] = 237, packets[bot] + 4
    few = np.flatnonzero(~bot & (packets < 5))
    window[random.choice(few, n // 40, replace=False)] = 237  # the window alone is not enough
    rate = random.lognormal(4.0, 1.5, n)
    protocol = random.choice(["TCP", "UDP", "ICMP"], n, p=[0.6, 0.38, 0.02]).astype(object)
    rate[is_["DDoS"]] = random.uniform(60_000, 90_000, int(is_["DDoS"].sum()))
    protocol[is_["DDoS"]] = "UDP"
    fast = np.flatnonzero(~is_["DDoS"] & (protocol == "TCP"))
    rate[random.choice(fast, n // 30, replace=False)] = random.uniform(50_000, 95_000, n // 30)
    duration = whole(11.0, 2.0)
    syn = random.integers(0, 2, n)
    duration[is_["PortScan"]], syn[is_["PortScan"]] = (
        random.integers(1, 60, is_["PortScan"].sum()),
        1,
    )
    short = np.flatnonzero(~is_["PortScan"] & (syn == 0))
    duration[random.choice(short, n // 20, replace=False)] = random.integers(1, 60, n // 20)
    segment = random.choice([8, 20, 24, 28, 32, 40], n, p=[0.1, 0.3, 0.1, 0.1, 0.35, 0.05])
    segment[is_["Web Attack"]] = 44
    odd = np.flatnonzero(~is_["Web Attack"] & (port != 80))
    segment[random.choice(odd, n // 40, replace=False)] = 44
    longest = whole(5.0, 1.0)
    longest[is_["Heartbleed"]] = random.integers(14_000, 17_000, is_["Heartbleed"].sum())

    def address(nets: list[str]) -> np.ndarray[Any, Any]:
        hosts = random.integers(1, 255, n)
        chosen = random.choice(len(nets), n)
        return np.array(
            [f"{nets[k]}.{h}" for k, h in zip(chosen, hosts, strict=True)], dtype=object
        )

    source = address([f"192.168.{k}" for k in range(12)])
    target = address([f"{a}.{b}.{c}" for a, b, c in random.integers(11, 223, (60, 3))])
    start = np.datetime64("2017-07-03T08:00:00", "us").astype(np.int64)
    at = np.sort(random.integers(0, 5 * 86_400_000_000, n)) + start
    ports = random.integers(1024, 65535, n)
    ids = [f"{s}-{t}-{p}-{q}-6" for s, t, p, q in zip(source, target, ports, port, strict=True)]
    again = random.choice(n, n // 25, replace=False)
    for k in again[1:]:  # a flow may be written down twice
        ids[k] = ids[again[0] if random.random() < 0.05 else max(0, k - 1)]
    table: dict[str, Any] = {
        "Flow ID": np.array(ids, dtype=object),
        "Src IP": source,
        "Src Port": ports,
        "Dst IP": target,
        "Dst Port": port,
        "Protocol": protocol,
        "Timestamp": np.array(
            [
                str(t) + "Z"
                for t in at.astype("datetime64[s]" if False else "datetime64[us]").astype(
                    "datetime64[s]"
                )
            ],
            dtype=object,
        ),
        "Flow Duration": duration,
        "Fwd Packets": packets,
        "Bwd Init Win Bytes": window,
        "Flow Packets/s": rate,
        "SYN Flag Count": syn,
        "Fwd Segment Size Min": segment,
        "Bwd Packet Length Max": longest,
    }
    k = 0
    while len(table) < N_COLUMNS - 1:
        kind, k = k % 4, k + 1
        figure: Any = random.lognormal(3, 2, n) if kind == 0 else whole(2, 1.5) if kind == 1 else (
            random.normal(0, 50, n) if kind == 2 else random.integers(0, 4, n)
        )  # fmt: skip
        if k % 9 == 0:
            figure = figure.astype(float)
            figure[random.random(n) < 0.03] = np.nan
        table[f"Figure {k}"] = figure
    table["Bulk Rate Avg"] = np.zeros(n, dtype=np.int64)
    table["Label"] = label
    return table
