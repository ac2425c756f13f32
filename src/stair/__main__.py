"""`python -m stair`: the command, where its folder is not among those that are searched."""

from stair.cli import main

if __name__ == "__main__":
    main()
