"""`efhorizon completion`: what a shell needs to complete commands, options and names with Tab."""

from __future__ import annotations

import argparse

from efhorizon.commands import _exit, _output

SHELLS = ("bash", "zsh", "fish")
HELP = "print a script that switches on tab completion in your shell"
DESCRIPTION = """\
Prints a script for bash, zsh or fish. With it, Tab completes commands,
options, the names of environments, and the tables in ./tables. To switch it on
for good:

  bash   echo 'eval "$(efhorizon completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(efhorizon completion zsh)"' >> ~/.zshrc
  fish   efhorizon completion fish > ~/.config/fish/completions/efhorizon.fish
"""
EXAMPLE = 'eval "$(efhorizon completion bash)"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="your shell")


def run(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    _output.results().write(shellcode(["efhorizon"], shell=options.shell).strip() + "\n")
    return _exit.DONE
