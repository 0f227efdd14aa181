"""The exact success of GORP (Algorithm 1), and the search for the least m with which it succeeds half the time.

decisions        which action sequences GORP compares, and where
sums             the distribution of the sum of m returns
winning          the chance to have the largest of several sums
backward         success by all choices, from the last to the first
success, forward success where GORP is likely to be, from the start on
goal             the same for goal MDPs, whose sums are binomial
fractions        success as a fraction, where floats cannot compare it with 1/2
exact_success    the one of these that an m needs
least_m          the search
"""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.gorp(...)` runs it: see library/
