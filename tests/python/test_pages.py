"""What is written about the package: the examples of docs/python.md and the notebook run, every public name has a
docstring, every function of the library that the package calls is declared as it is called."""
import contextlib
import importlib.util
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import minidirac as md
from oracle import TOP

HAS_STUDY = all(importlib.util.find_spec(name) for name in ("h5py", "matplotlib"))


def run_notebook(path, folder):
    """What its last code cell prints: by nbclient where it is, else cell after cell in this process."""
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if any(cell["outputs"] or cell["execution_count"] for cell in code):
        raise AssertionError(f"{path} has outputs; strip them")
    if all(importlib.util.find_spec(name) for name in ("nbclient", "ipykernel")):
        import nbclient
        import nbformat

        executed = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(executed, timeout=200, extra_arguments=["--log-level=ERROR"],
                                resources={"metadata": {"path": folder}}).execute()
        return "".join(output.get("text", "") for output in executed.cells[-2].outputs)
    names = {}
    for cell in code:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec("".join(cell["source"]), names)
    return said.getvalue()


class Pages(unittest.TestCase):
    @unittest.skipUnless(HAS_STUDY, "no h5py and matplotlib")
    def test_page(self):
        with open(os.path.join(TOP, "docs", "python.md"), encoding="utf-8") as page:
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(TOP, "inputs"), os.path.join(folder, "inputs"))
            run = subprocess.run([sys.executable, "-c", "".join(blocks)], cwd=folder, stdout=subprocess.PIPE, text=True,
                                 check=True)
            self.assertTrue(os.path.getsize(os.path.join(folder, "pion.png")))
        said = run.stdout.splitlines()
        self.assertEqual(said[0], "(4, 4, 4, 8) 0.571834509795188")
        self.assertIn("nowhere.lime cannot be read", said[-1])

    @unittest.skipUnless(HAS_STUDY, "no h5py and matplotlib")
    def test_notebook(self):
        with tempfile.TemporaryDirectory() as folder:
            said = run_notebook(os.path.join(TOP, "docs", "example", "pion_mass.ipynb"), folder)
        masses = {float(m): float(value) for m, value in re.findall(r"m = (\S+): pion (\S+) ", said)}
        for m, value, error in ((0.1, 0.784, 0.019), (0.2, 1.102, 0.017)):
            self.assertLessEqual(abs(masses[m] - value), error)

    def test_docstrings(self):
        for name in md.__all__:
            thing = getattr(md, name)
            self.assertTrue(inspect.getdoc(thing), name)
            if not inspect.isclass(thing):
                continue
            for word, member in inspect.getmembers(thing):
                if not word.startswith("_") and (callable(member) or isinstance(member, property)):
                    self.assertTrue(inspect.getdoc(member), f"{name}.{word}")

    def test_structures(self):
        """Fields and their order, as the header has them: what ctypes cannot see."""
        from minidirac import library

        with open(os.path.join(TOP, "src", "library", "minidirac.h"), encoding="utf-8") as file:
            header = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for name, structure in (("lattice_request", "LatticeRequest"), ("layout", "CLayout"), ("means", "CMeans"),
                                ("chain_request", "ChainRequest"), ("smearing", "Smearing"),
                                ("quark_request", "QuarkRequest"), ("solve_request", "SolveRequest"),
                                ("solve_result", "SolveResult"), ("eigen_search", "EigenSearch")):
            body = re.search(r"typedef struct md_%s \{(.*?)\} md_%s;" % (name, name), header, re.S).group(1)
            fields = re.findall(r"(\w+)(?:\[\d\])?\s*[,;]", body)
            self.assertEqual(fields, [field[0] for field in getattr(library, structure)._fields_], name)


if __name__ == "__main__":
    unittest.main()
