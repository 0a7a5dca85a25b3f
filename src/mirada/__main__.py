"""python -m mirada: the command line."""

from mirada.cli import main

if __name__ == "__main__":
    main()
