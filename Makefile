# `make lab` and `make test` are all that most people need; `make` alone lists the rest.
# Written for GNU make 3.81 and BSD tools, which macOS ships, as well as for newer ones.

# Extra words for JupyterLab, pytest, `course outputs` and the benchmarks:
#   make lab LAB_ARGS="--no-browser --port 8899"
#   make test TEST_ARGS="tests/course -x"
#   make outputs NN="01 02"
#   make bench BENCH="recording deadlocks"
LAB_ARGS ?=
TEST_ARGS ?=
NN ?=
BENCH ?=

# The first Python that is new enough; `make lab PYTHON=/path/to/python3.12` chooses another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done)

# Where it is set, each of the many processes of a run compiles the course anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
LOCK := pyproject.toml constraints.txt
# What the tests need.
EXTRAS := $(VENV)/.installed-test $(VENV)/.installed-room $(VENV)/.installed-slides $(VENV)/.installed-hosts

# A stamp says that its set is installed. The first also holds this folder's path: an environment
# whose Python is gone, or which was moved with its folder, no longer works and is made anew.
USABLE := $(shell $(BIN)/python -c '' 2>/dev/null \
	&& test "$$(cat $(VENV)/.installed 2>/dev/null)" = "$(CURDIR)" && echo yes)

.PHONY: help lab venv test test-all prove soak lint notebooks outputs site messages bench clean FORCE

help:  ## list these targets
	@LC_ALL=C grep -E '^[a-z-]+:.*##' Makefile | sed -e 's/:.*## */: /' | awk -F ': ' '{printf "  make %-10s %s\n", $$1, $$2}'

lab: $(VENV)/.installed  ## set up (once) and open the course in JupyterLab
	@$(BIN)/course lab $(LAB_ARGS)

venv: $(VENV)/.installed  ## set up .venv and nothing more

test: $(EXTRAS)  ## run the tests and all notebooks, five at a time because many only wait
	$(BIN)/python -m pytest -n 5 --dist worksteal $(TEST_ARGS)

test-all: $(EXTRAS)  ## run the same, and the extended tests: sandboxes, browsers, many ways to start ranks
	$(BIN)/python -m pytest -m "not soak and not prove" -n 3 --dist worksteal $(TEST_ARGS)

prove: $(EXTRAS)  ## check every known answer of every exercise, and all solved notebooks in a sandbox
	$(BIN)/python -m pytest -m "(prove or not prove) and not soak" -n 3 --dist worksteal tests/exercises/test_answers.py tests/grading/test_references.py $(TEST_ARGS)

soak: $(EXTRAS)  ## run the long tests, with their figures
	$(BIN)/python -m pytest -m soak -s $(TEST_ARGS)

lint: $(EXTRAS)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

notebooks: $(VENV)/.installed  ## make the learner's notebooks/ from solutions/
	$(BIN)/course build

outputs: $(VENV)/.installed  ## run solutions/ and store what the cells gave
	$(BIN)/course outputs $(NN)

site: $(VENV)/.installed  ## write the course as static pages, into site/
	$(BIN)/course site site $(SITE_ARGS)

messages: $(EXTRAS)  ## provoke each kind of message and write build/messages.html
	$(BIN)/python -m tests.messages

bench: $(VENV)/.installed-bench $(VENV)/.installed-test  ## measure against peers, as ratios in one run
	$(BIN)/python -m tests.benchmarks$(if $(BENCH), $(BENCH))

clean:  ## remove .venv and caches; work/ stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

ifneq ($(USABLE),yes)
$(VENV)/.installed: FORCE
endif
$(VENV)/.installed: $(LOCK)
ifneq ($(USABLE),yes)
	@test ! -L $(VENV) || { echo "$(VENV) is a link: it would be made anew where it leads. Remove it first."; exit 1; }
	@test -n "$(PYTHON)" || { \
	echo "Found no Python >= 3.11 (looked for python3, python3.11 ... python3.14)."; \
	echo "Debian/Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python@3.12"; \
	echo "Elsewhere: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "$(PYTHON) is older than 3.11, or does not run. Name a newer one:"; \
	echo "make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	echo "$(PYTHON) ($$version) cannot make virtual environments: its venv module is missing."; \
	echo "Debian/Ubuntu: sudo apt-get install python$$version-venv"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
endif
	@echo "Installing the course and PyTorch into $(VENV): some minutes, once."
	$(PIP_INSTALL) -e .
	@echo "$(CURDIR)" > $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(PIP_INSTALL) -e '.[$*]'
	@touch $@
