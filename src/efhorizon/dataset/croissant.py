"""croissant.json: the data set described for programs, in Croissant 1.0 (https://docs.mlcommons.org/croissant)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from efhorizon.dataset.card import Facts
from efhorizon.dataset.registry import FileEntry

FILE: Final = "croissant.json"
_LICENCE = "https://creativecommons.org/licenses/by/4.0/"
_PAPER = "https://arxiv.org/abs/2304.09853"
_PARQUET, _CSV = "application/x-parquet", "text/csv"
_FILES = {
    "index.parquet": (_PARQUET, "One row per MDP: theory, practice, and the paths of its parts."),
    "runs.parquet": (_PARQUET, "One row per training run, with its learning curve."),
    "mdps.parquet": (_PARQUET, "One row per MDP with the whole analysis as JSON."),
    "summary.csv": (_CSV, "The columns of the paper's authors, then ours."),
    "tables.csv": (_CSV, "The tables that were built, and how each was verified."),
}
_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean"}
_RUN_COLUMNS = {
    **dict.fromkeys(("id", "algorithm", "backend", "setting", "solved_by"), "string"),
    **dict.fromkeys(("seed", "sample_complexity", "steps"), "int64"),
    **dict.fromkeys(("best_return", "final_return", "optimal_return", "wall_seconds"), "double"),
}
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def encoded(facts: Facts, files: Mapping[str, FileEntry], address: str | None) -> bytes:
    """The content of the file; `address` is where the data set will be."""
    base = (address or _PAPER).rstrip("/")
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": facts.name,
        "description": (
            f"{facts.num_mdps} environments of deep RL as Markov decision processes, with sample-complexity bounds and "
            f"{facts.num_runs} training runs."
        ),
        "version": facts.version,
        "license": _LICENCE,
        "url": base,
        "citeAs": f"Laidlaw, Russell, Dragan. Bridging RL Theory and Practice with the Effective Horizon. {_PAPER}",
        "creator": {"@type": "sc:Organization", "name": "the authors of the study"},
        "keywords": ["reinforcement learning", "effective horizon", "sample complexity"],
        **({"datePublished": facts.date} if facts.date else {}),
        "distribution": [_file(path, files[path]) for path in _FILES if path in files],
        "recordSet": [
            _records("mdps", "index.parquet", facts.columns, "mdp_name"),
            _records("runs", "runs.parquet", _RUN_COLUMNS, None),
        ],
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _file(path: str, entry: FileEntry) -> dict[str, Any]:
    kind, text = _FILES[path]
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "description": text,
        "contentUrl": path,
        "contentSize": f"{entry.size} B",
        "encodingFormat": kind,
        "sha256": entry.sha256,
    }


def _records(name: str, file: str, columns: Mapping[str, str], key: str | None) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        **({"key": {"@id": f"{name}/{key}"}} if key else {}),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": f"{name}/{column}",
                "dataType": _TYPES[type_],
                "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
            }
            for column, type_ in columns.items()
        ],
    }
