"""ReFrame checks of miniDirac; a centre's own derive from MinidiracCheck, or set references and partitions here.

    reframe -C SETTINGS.py -c scripts/cluster/reframe_check.py -r -S suite_class=M -S num_tasks=4 -S num_cpus_per_task=16

takes minidirac from the PATH; -S executable=FILE names another.
"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before, sanity_function, variable


class MinidiracCheck(rfm.RunOnlyRegressionTest):
    """Runs minidirac with `executable_opts` and reads its report."""
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "minidirac"
    num_tasks = 1
    num_cpus_per_task = 1

    @run_before("run")
    def ask_for_report(self):
        self.executable_opts += ["--json", "report.json"]
        self.env_vars["OMP_NUM_THREADS"] = self.num_cpus_per_task

    @property
    def report(self):
        with open(os.path.join(self.stagedir, "report.json"), encoding="utf-8") as file:
            return json.load(file)


@rfm.simple_test
class MinidiracSuite(MinidiracCheck):
    """`bench suite`: every part is checked, and the figure of merit is kept (docs/suite.md)."""
    action = parameter(["naive", "hisq"])
    suite_class = variable(str, value="S")

    @run_after("init")
    def choose_problem(self):
        self.executable_opts = ["bench", "suite", "--class", self.suite_class, "--action", self.action]

    @sanity_function
    def passes(self):
        return sn.all([sn.assert_found(r"^PASS  class", self.stdout),
                       sn.assert_eq(self.report["ranks"], self.num_tasks)])

    @performance_function("right-hand sides/s")
    def figure_of_merit(self):
        return self.report["figure_of_merit"]

    @performance_function("GFLOP/s")
    def figure_gflops(self):
        return self.report["figure_gflops"]
