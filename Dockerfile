# One generic image: your rules are mounted at /rules, or copied there by an image of your own that starts FROM this one.
# The base is pinned, so that two builds of one commit have the same Python and the same Debian. Security updates arrive
# by another digest: `docker buildx imagetools inspect python:3.13-slim-bookworm` prints the present one (of all
# architectures), and .github/dependabot.yml asks for it. Not Alpine: google-re2 has no wheel for musl.
ARG PYTHON=python:3.13-slim-bookworm@sha256:ed86c82274b3c69b52fb5820f358f0bd7df0b603332063cb5c6e32bd220c3e6e

FROM ${PYTHON} AS build
WORKDIR /src
COPY requirements/image.txt requirements/build.txt requirements/
RUN python -m venv /opt/ruleop \
 && /opt/ruleop/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps --only-binary :all: -r requirements/image.txt
# Of the package kubernetes, ruleop imports kubernetes.config, and only for a login by gcp (ruleop/operator/wire/auth/kubeconfig.py). Importing
# it needs no generated model and no generated API: 120 MB.
# Sources stay beside their bytecode, so that a traceback shows its lines.
RUN cd /opt/ruleop/lib/python3*/site-packages/kubernetes \
 && find . \( -path '*/client/models/*' -o -path '*/client/api/*' \) -not -name __init__.py -delete
COPY pyproject.toml README.md LICENSE ./
COPY ruleop ruleop
RUN python -m venv /opt/build && /opt/build/bin/pip install --no-cache-dir --require-hashes --no-deps --only-binary :all: -r requirements/build.txt \
 && /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation -w /wheels . \
 && /opt/ruleop/bin/pip install --no-cache-dir --no-compile --no-deps /wheels/*.whl \
 && /opt/ruleop/bin/pip uninstall --yes --quiet pip \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/ruleop/lib

FROM ${PYTHON}
# Nothing may be written at run time, so all is compiled now: Python's own library too, which the base image has without its bytecode.
RUN python -m compileall -q --invalidation-mode unchecked-hash \
    -x '/(test|unittest|idlelib|turtledemo|tkinter|ensurepip|lib2to3|pydoc_data|_pyrepl|site-packages)/' \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /opt/ruleop /opt/ruleop
ENV PATH=/opt/ruleop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /rules
# A number, so that `runAsNonRoot` can be checked; no name, no home, nothing writable.
USER 10001:10001
# No shell between: a signal reaches ruleop itself.
ENTRYPOINT ["ruleop"]
CMD ["run"]
