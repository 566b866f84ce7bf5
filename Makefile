# Every target makes .venv first where it is missing or older than the pins. PYTHON=python3.12 chooses the interpreter.
SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
OTHER_PYTHONS := 3.12 3.13

.PHONY: gate audit test lint night report browser cluster table matrix race recall power bench bench-self bench-gpu clean

$(READY): pyproject.toml ci/constraints.txt ci/constraints-pypi.txt ci/install.sh
	ci/install.sh $(VENV)
	touch $@

gate: $(READY)      ## every law of every shipped contract and example, 20 examples each
	$(BIN)/trivet gate --profile quick

audit: $(READY)     ## every past bug must turn its gate red
	$(BIN)/trivet audit --faults-only

test: $(READY)      ## unit tests, then the gates at 100 examples, the faults, and the compiled artifacts
	$(PYTEST) -q -rs --durations=10
	$(BIN)/trivet gate --profile ci
	$(BIN)/trivet audit --faults-only
	$(BIN)/trivet bench --static

lint: $(READY)      ## style, types, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -q --doctest-modules src/trivet --ignore-glob='*/ci/suites/*_operators.py'

night: cluster      ## what takes minutes: tests marked night, the gates at 1,000 examples, the whole audit, Ray
	$(PYTEST) -q -m night
	$(BIN)/trivet gate --profile deep
	$(BIN)/trivet audit

report: $(READY)    ## writes the gates' report as one HTML page; opens it where there is a desktop
	@$(BIN)/trivet gate --profile quick --html .trivet/gate.html; status=$$?; \
	if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] && [ -f .trivet/gate.html ]; then \
		$(BIN)/python -m webbrowser "file://$$PWD/.trivet/gate.html"; \
	fi; \
	echo "report: .trivet/gate.html"; exit $$status

browser: $(READY)   ## the pages in a real browser, which Debian's packages bring where it is missing
	ci/install_browser.sh
	$(PYTEST) -q tests/test_pages.py

cluster: $(READY)   ## the audit on a Ray cluster of two nodes, one of which is killed; installs Ray
	$(BIN)/python -m pip install --quiet --constraint ci/constraints.txt --editable '.[ray]'
	$(PYTEST) -q -rs tests/test_cluster.py

table: $(READY)     ## the README's table of the audit, from an audit of everything
	$(BIN)/trivet audit --json .trivet/audit.json --html .trivet/audit.html; status=$$?; \
	$(BIN)/python -m trivet.ci.audit_table .trivet/audit.json --write; exit $$status

matrix: $(READY)    ## the unit tests on the other Pythons that this machine has
	@found=; for version in $(OTHER_PYTHONS); do \
		if python$$version -c '' 2>/dev/null; then \
			found="$$found $$version"; \
			PYTHON=python$$version ci/install.sh .trivet/venv-$$version && \
			.trivet/venv-$$version/bin/python -m pytest -q || exit 1; \
		else echo "python$$version: not on this machine"; fi; \
	done; echo "matrix ran on:$${found:- no other Python}"

race: $(READY)      ## the simulator's speed beside Triton's interpreter
	$(BIN)/python -m trivet.ci.race

recall: $(READY)    ## what each sanitizer sees of faults planted in other people's kernels and ours
	$(BIN)/python -m trivet.ci.recall

power: $(READY)     ## false alarms and detection of the bounds beside other projects' rules
	$(BIN)/python -m trivet.ci.power

bench: $(READY)     ## trivet's own speed: examples and mutants a second, start, imports
	$(PYTEST) tests/speed/bench_ourselves.py -q --benchmark-columns=median,iqr,rounds --benchmark-sort=name

bench-self: $(READY) ## would the bench notice? planted regressions and neutral edits
	$(BIN)/python -m trivet.ci.bench_self_test

bench-gpu: $(READY) ## all that needs a GPU: gates, spread, planted pairs, kernels beside others
	$(BIN)/python -m trivet.ci.on_gpu
	$(PYTEST) tests/speed/bench_kernels.py -q -rs --benchmark-columns=median,iqr,rounds

clean:              ## everything that the other targets made
	rm -rf $(VENV) .trivet .hypothesis .mypy_cache .ruff_cache .pytest_cache build dist src/*.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
