"""Behaviour versions: whether a stored result still counts.

Each component that stored results depend on (a suite, exploring, consolidation, the analysis, each learner) declares
one integer next to its code:

    BEHAVIOUR = 1  # raise it when the same inputs give another result

Keys and provenance name the version, not the source, so renaming and moving code voids nothing. A test
(`tests/test_behaviour.py`) keeps a digest of the source behind each number and asks, when it changes, whether the
behaviour has changed too.
"""

from __future__ import annotations

import ast
import hashlib

# Before there were numbers, a digest of the source was used instead. The first version of a component is still written
# that way, so results from that time keep their names.
_FIRST_VERSIONS = {
    "atari": "444f82dfaaa938e6",
    "procgen": "1d4541c9fd66c154",
    "minigrid": "9aad1e7164361471",
    "gymnasium": "fb454abc71c1bc31",
    "table": "d00606deccae34b6",  # exploring and consolidation
    "analysis": "24765a7a615fef68",
    "ppo dense": "655e616fa1c1d0f3",
    "ppo image": "327ccd285fa590f4",
    "dqn dense": "c8f3826f9cb07d92",
    "dqn image": "eb0db9b74eae2809",
    "sb3": "7278da24f99a7423",
    "gorp": "57cd47682113bf9e",
}

# Digests of the sources that made the published analyses (data/study); all of them count as the first version.
_FIRST_ANALYSES = frozenset(
    (
        "007c56efa5efa761",
        "0a581f33c1331146",
        "1587f01c4dda96cf",
        "24765a7a615fef68",
        "2906617b249a621b",
        "29752e9785d894bc",
        "40b840cf786d88d5",
        "41b0252bd72f0169",
        "4453ec2ceb0444ce",
        "465104cbd792af82",
        "4ea10117d0940724",
        "657b85e12b94c8a4",
        "6ffcb33fd70f3d18",
        "91e45700fe103bca",
        "95e89459828a1fd8",
        "a80ae88b50c1e819",
        "b3487711ea199ebd",
        "b992dc0fe3d7c38c",
        "fd48c8f18c3d1b38",
        "fe8195afa86a710a",
    )
)


def version_name(component: str, *numbers: int) -> str:
    """How keys and provenance name a version of a component, or of several that always go together."""
    if all(number == 1 for number in numbers):
        return _FIRST_VERSIONS.get(component, f"{component} 1")
    return f"{component} {'.'.join(map(str, numbers))}"


def is_version(name: object, component: str, *numbers: int) -> bool:
    """Whether a stored result was made by this version."""
    current = version_name(component, *numbers)
    is_first = current == _FIRST_VERSIONS.get(component)
    return name == current or (component == "analysis" and is_first and name in _FIRST_ANALYSES)


def source_digest(*sources: str) -> str:
    """A hash of what Python source does: comments, docstrings and layout do not count."""
    digest = hashlib.sha256()
    for source in sources:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                del body[0]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:16]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
