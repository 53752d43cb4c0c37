# How to use it: ramble.yaml of this repository.
from ramble.appkit import *


class Minidirac(ExecutableApplication):
    """Suite of miniDirac: staggered Dirac operators and solvers of lattice QCD, each part checked."""

    name = "minidirac"

    tags("lattice-qcd", "sparse-solver", "memory-benchmark")

    executable(
        "suite",
        "{minidirac} bench suite --class {suite_class} --action {action} --json {experiment_run_dir}/report.json",
        use_mpi=True,
    )
    workload("suite", executables=["suite"])
    workload_variable("minidirac", default="minidirac", description="The program", workloads=["suite"])
    workload_variable("suite_class", default="S", description="XS, S, M, L or XL: docs/suite.md", workloads=["suite"])
    workload_variable("action", default="naive", description="naive or hisq", workloads=["suite"])

    log_file = "{experiment_run_dir}/{experiment_name}.out"
    report = "{experiment_run_dir}/report.json"
    success_criteria("checks", mode="string", match=r"PASS  class.*", file=log_file)
    figure_of_merit(
        "figure_of_merit",
        log_file=report,
        fom_regex=r'\s"figure_of_merit":\s*(?P<figure>[0-9.e+-]+)',
        group_name="figure",
        units="right-hand sides/s",
    )
    figure_of_merit(
        "figure_gflops",
        log_file=report,
        fom_regex=r'\s"figure_gflops":\s*(?P<gflops>[0-9.e+-]+)',
        group_name="gflops",
        units="GFLOP/s",
    )
