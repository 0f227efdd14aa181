"""The fuzzer: damaged files, requests and arguments for every command that reads them (docs/trust.md).

corpus       small real files of every kind, made by the product itself
kinds        the kinds: which files, which mutations, which commands read them
mutations    what is done to any file; `json_files`, `npz_files`, `store_files` and so on know their formats
requests     what is sent to `serve`; `arguments`: what is typed
bench        where a case is made, run and judged
children     one command in a forked child, with limits on time and memory
verdicts     whether what a command did is acceptable
workers      warm processes that run cases
runs         all cases of a run: which, in what order, resumed from a log
summary      counts by kind, command and outcome
"""
