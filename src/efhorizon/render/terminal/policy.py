"""What a policy is worth on a table."""

from __future__ import annotations

from efhorizon.policies.worth import Mistake, PolicyWorth
from efhorizon.render import numbers
from efhorizon.render.terminal.layout import Parts, literal, table


def described(worth: PolicyWorth) -> Parts:
    """One screen."""
    yield (
        f"[bold]{literal(worth.id or 'unnamed')}[/bold]  {numbers.counted(worth.num_states, 'state')}, "
        f"{numbers.counted(worth.num_actions, 'action')}, horizon {worth.horizon}"
    )
    yield ""
    shown = table("", "this policy", "random play", "optimal")
    shown.add_row(
        "mean return",
        *(numbers.significant(found, 4) for found in (worth.exploration_return, worth.random_return)),
        numbers.significant(worth.optimal_return, 4),
    )
    shown.add_row(
        "chance of an optimal episode",
        *(
            numbers.significant(found, 3)
            for found in (worth.optimal_return_probability, worth.random_optimal_return_probability)
        ),
        "1",
    )
    shown.add_row("entropy of its actions, in bits", f"{worth.entropy:.2f}", f"{worth.greatest_entropy:.2f}", "")
    ratio = "infinite" if worth.ratio is None else numbers.significant(worth.ratio, 3)
    shown.add_row("distance from random play", ratio, "1", "")
    yield shown
    yield ""
    yield "  The distance is the largest 1 / (A p) over its probabilities p: the factor of Theorems B.1 and B.2."
    yield f"  Always taking the likeliest action returns {numbers.significant(worth.greedy_return, 4)}."
    if not worth.mistakes:
        yield "  It makes no mistakes."
        return
    yield ""
    yield "  where its episodes first go wrong, as a share of all episodes"
    for mistake in worth.mistakes:
        yield f"    {100 * mistake.share:5.1f}%  state {mistake.state:,} at time {mistake.time}: {_choices(mistake)}"


def _choices(mistake: Mistake) -> str:
    """The likely actions, the optimal ones marked."""
    likely = sorted(mistake.actions.items(), key=lambda choice: -choice[1])[:4]
    return ", ".join(
        f"{literal(name)} {chance:.2f}{' (optimal)' if name in mistake.optimal_actions else ''}"
        for name, chance in likely
    )
