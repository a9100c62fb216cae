"""`python -m serai` is the command line, too."""

from serai.cli import main

main()
