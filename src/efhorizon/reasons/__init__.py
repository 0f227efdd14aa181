"""Why an MDP is hard: the states where GORP loses its chance, and the kind of difficulty (docs/why.md).

why          the answer for one problem: three reasons at most
losses       where GORP makes its first mistake, exactly
simulation   the same by playing it, where exact chances cannot be had
repair       how much success rises if GORP plays right somewhere by fiat
places       which states are one reason, and what is right there
decision     the choice in one state: returns, episodes to decide it
trap         how deep misleading rewards mislead
needed       how much of the horizon is needed
kinds        the rules that name a difficulty
sentences    the same for people
"""
