"""``fairway completion``: the script that teaches a shell to complete the command."""

import click
from click.shell_completion import get_completion_class

from admin.cli import write

_VARIABLE = "_FAIRWAY_COMPLETE"


@click.command(
    short_help="A script that teaches bash, zsh or fish to complete.",
    epilog="""\b
Examples:
  source <(fairway completion bash)
  fairway completion zsh > ~/.zfunc/_fairway
  fairway completion fish > ~/.config/fish/completions/fairway.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a completion script for SHELL (bash 4.4 or newer, zsh, fish)."""
    found = get_completion_class(shell)
    assert found is not None
    write(found(context.find_root().command, {}, "fairway", _VARIABLE).source() + "\n", None)
