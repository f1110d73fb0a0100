"""Answers requests: the routes, and the verbs of resources."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kinds import Kind
from ruleop.localcluster.api.accept import PLAIN, YAML, Form, check_form, form_of, with_included
from ruleop.localcluster.api.addresses import check_name
from ruleop.localcluster.api.bodies import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    media_of,
    read_body,
    read_delete_options,
    read_patch,
)
from ruleop.localcluster.api.forms import in_form, list_bytes, object_bytes
from ruleop.localcluster.api.general import NO_PAGE, General
from ruleop.localcluster.api.go_json import duplicates, may_repeat, unrecognized
from ruleop.localcluster.api.options import DeleteOptions, ListOptions, WriteOptions, version_of
from ruleop.localcluster.api.pages import NOW, expired_page, read_token, token_of
from ruleop.localcluster.api.patching import configuration, patched, refused
from ruleop.localcluster.api.reviews import review, token_request
from ruleop.localcluster.api.route import Route, route_of
from ruleop.localcluster.api.scale import SCALE, decoded_scale, scale_configuration, scale_of, scaled
from ruleop.localcluster.api.selection import selection_of
from ruleop.localcluster.api.timeouts import timeout_of
from ruleop.localcluster.api.verbs import verb_of
from ruleop.localcluster.api.watching import DEFAULT_TIMEOUT, Watch, WatchOptions
from ruleop.localcluster.errors import (
    Cause,
    Rejected,
    bad_request,
    expired,
    invalid_named,
    method_not_allowed,
    not_found,
    not_registered,
    not_supported,
    too_large_version,
    unknown_path,
    unsupported_media_type,
    unsupported_patch_type,
)
from ruleop.localcluster.http.message import JSON_TYPE, Response, Stream
from ruleop.localcluster.kinds.registry import REVIEWS, is_builtin_group
from ruleop.localcluster.store.store import Name, Stored, TooLargeError, TooOldError
from ruleop.schema.builtin_types import served_resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.localcluster.api.writer import Writer
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.registry import Registry
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.store import Store
    from ruleop.localcluster.users import Users

MAX_BODY: Final = 3 * 1024 * 1024
_TRUE: Final = ("true", "1", "True")
_OF_PROCESSES: Final = ("log", "exec", "attach", "portforward", "proxy")
_BROWSERS: Final = ("curl", "Wget", "Mozilla/5.0")
_PATCH_TYPES: Final = (JSON_PATCH, MERGE, APPLY)


class Api:
    def __init__(self, store: Store, registry: Registry, writer: Writer, users: Users) -> None:
        self.store, self.registry, self.writer, self.users = store, registry, writer, users
        self.general = General(store, registry)
        self._at: int | None = None  # of the current request

    def handle(self, request: Request, at: int | None = None) -> Response | Stream:
        """`at`: a version of the past, for a read that is stale."""
        self.writer.warnings, self._at = [], at
        if len(request.body) > MAX_BODY:
            message = f"Request entity too large: limit is {MAX_BODY}"
            return refusal(Rejected(413, "RequestEntityTooLarge", message))
        try:
            answer = self._answer(request)
        except Rejected as error:
            answer = refusal(error)
            if request.headers.get("accept", "").startswith(YAML):
                answer = in_form(Form(is_yaml=True), answer)
        except TooLargeError as error:
            answer = refusal(Rejected(500, "", str(error)))
        if isinstance(answer, Response) and _is_for_people(request):
            answer = _indented(answer)
        return _warning(answer, self.writer.warnings) if self.writer.warnings else answer

    def _answer(self, request: Request) -> Response | Stream:
        if "timeout" in request.query and not _is_watch(request):
            timeout_of(request.query)
        route = route_of(request.path)
        if route is None:
            return self.general.answer(request)
        served = self.registry.get(route.group, route.version, route.plural)
        if served is None or (route.namespace and not served.namespaced):
            if not is_builtin_group(route.group):
                return NO_PAGE
            raise unknown_path()
        if served.is_custom and served.namespaced and not route.namespace and _needs_namespace(request, route):
            return NO_PAGE
        if served.deprecation:
            self.writer.warnings.append(served.deprecation)
        if served.kind.kind in REVIEWS:
            return _json(review(served, read_body(request), request.user), 201)
        if route.subresource:
            return self._subresource(request, route, served)
        if route.name:
            return self._object(request, route, served)
        return self._collection(request, route, served)

    # -- collections ---------------------------------------------------------------------------------------------------

    def _collection(self, request: Request, route: Route, served: Served) -> Response | Stream:
        if request.method == "GET":
            if _is_watch(request):
                return self._watch(request, route, served)
            return self._list(request, route, served)
        if request.method == "POST":
            if served.namespaced and not route.namespace:
                raise method_not_allowed()
            return self._create(request, route, served)
        if request.method == "DELETE" and "deletecollection" in served.verbs:
            if served.namespaced and not route.namespace:
                raise method_not_allowed()
            return self._delete_collection(request, route, served)
        raise method_not_allowed()

    def _versioned(self, served: Served, route: Route, options: ListOptions) -> tuple[int, list[Stored]]:
        """The objects of a list, and the version of which they are."""
        self._check_reached(options.version)
        version, after = self.store.version, Name("", "")
        if options.token:
            version, after = read_token(options.token, route.namespace, namespaced=served.namespaced)
            version = self.store.version if version == NOW else version
        elif options.exact:
            version = options.version
        elif self._at is not None:
            version = self._at
        else:
            return version, [served.seen(each) for each in self.store.all(served.resource, route.namespace)]
        try:
            found = self.store.at(served.resource, version, route.namespace, after)
            return version, [served.seen(each) for each in found]
        except TooOldError:
            if options.token:
                raise expired_page(after, route.namespace) from None
            raise expired("The resourceVersion for the provided list is too old.") from None

    def _check_reached(self, version: int) -> None:
        """Raises Rejected for a version of the future."""
        if version > self.store.version:
            raise too_large_version(version, self.store.version)

    def _list(self, request: Request, route: Route, served: Served) -> Response:
        query, form = request.query, _form(request, served)
        check_form(form, served, is_list=True)
        selection, options = selection_of(query, served), ListOptions.of(query, watches=False)
        number, found = self._versioned(served, route, options)
        version, limit = str(number), options.limit
        if selection is not None:
            found = [each for each in found if selection(each.obj)]
        metadata: dict[str, Any] = {"resourceVersion": version}
        if limit > 0 and len(found) > limit:
            rest, found = len(found) - limit, found[:limit]
            metadata["continue"] = token_of(number, found[-1].name, route.namespace)
            if selection is None:
                metadata["remainingItemCount"] = rest
        return in_form(form, Response(200, list_bytes(served, found, metadata, form)))

    def _watch(self, request: Request, route: Route, served: Served) -> Stream:
        query = request.query
        given = ListOptions.of(query, watches=True)
        self._check_reached(given.version)
        options = WatchOptions(
            version=str(given.version or ""),
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            initial_events=given.initial_events,
            timeout=float(given.timeout or DEFAULT_TIMEOUT),
            form=_form(request, served, watches=True),
        )
        watch = Watch(self.store, served, route.namespace, selection_of(query, served), options)
        return Stream(watch.start)

    def _create(self, request: Request, route: Route, served: Served) -> Response:
        obj = self._parsed(request, served)
        options = _write_options(request, "CreateOptions")
        return self._written(request, served, self.writer.create(served, route.namespace, obj, options), 201)

    def _delete_collection(self, request: Request, route: Route, served: Served) -> Response:
        options = DeleteOptions.of(request.query, read_delete_options(request))
        selection = selection_of(request.query, served)
        found = [
            each
            for each in map(served.seen, self.store.all(served.resource, route.namespace))
            if selection is None or selection(each.obj)
        ]
        for each in found:
            self.writer.delete(served, each, options)
        return Response(200, list_bytes(served, found, {"resourceVersion": str(self.store.version)}, PLAIN))

    # -- one object ----------------------------------------------------------------------------------------------------

    def _object(self, request: Request, route: Route, served: Served) -> Response | Stream:
        if request.method == "GET":
            if version := request.query.get("resourceVersion"):
                self._check_reached(version_of(version))
            return self._written(request, served, self._find(route, served), 200)
        if request.method == "PUT":
            return self._update(request, route, served)
        if request.method == "PATCH":
            return self._patch(request, route, served)
        if request.method == "DELETE":
            return self._delete(request, route, served)
        if request.method == "POST" and served.is_custom:
            return self._create(request, route, served)
        raise method_not_allowed()

    def _find(self, route: Route, served: Served) -> Stored:
        if served.namespaced and not route.namespace:
            raise unknown_path()
        name = Name(route.namespace, route.name)
        found = self.store.get(served.resource, name)
        if self._at is not None:
            past = self.store.at(served.resource, self._at, route.namespace, Name("", ""))
            found = next((each for each in past if each.name == name), None)
        if found is None:
            raise not_found(route.group, route.plural, route.name)
        return served.seen(found)

    def _update(self, request: Request, route: Route, served: Served) -> Response:
        if served.namespaced and not route.namespace:
            raise unknown_path()
        obj = self._parsed(request, served)
        options = _write_options(request, "UpdateOptions")
        name = Name(route.namespace, route.name)
        return self._written(request, served, self.writer.replace(served, name, obj, route.subresource, options), 200)

    def _patch(self, request: Request, route: Route, served: Served) -> Response:
        media = media_of(request)
        _check_patch_type(served, media)
        options = _write_options(request, "PatchOptions", is_apply=media == APPLY)
        if media == APPLY:
            return self._apply(request, route, served, options)
        old = self._find(route, served)
        patch = read_patch(request, media)
        new = dict(patched(served, old.obj, media, patch))
        if served.is_custom:
            _check_kind(new, old.obj, served)
        else:
            new = self._decodable(served, new, media, patch)
        options = replace(options, refuse=partial(refused, media, patch, new))
        return self._written(request, served, self.writer.update(served, old, new, route.subresource, options), 200)

    def _decodable(self, served: Served, new: dict[str, Any], media: str, patch: Any) -> dict[str, Any]:
        """The object that a patch makes of one of a built-in kind. Raises Rejected if the server cannot decode it."""
        if media == STRATEGIC:  # is applied to the decoded object, which has no kind
            new = {**new, "kind": served.kind.kind, "apiVersion": served.kind.api_version}
        elif (problem := self._conversion_problem(new, served)) is not None:
            raise refused(media, patch, new, problem)
        return new

    def _apply(self, request: Request, route: Route, served: Served, options: WriteOptions) -> Response:
        config = configuration(read_patch(request, APPLY), served.kind)
        key = Name(route.namespace, route.name)
        found, made = self.writer.apply(served, key, config, route.subresource, options)
        return self._written(request, served, found, 201 if made else 200)

    def _delete(self, request: Request, route: Route, served: Served) -> Response:
        options = DeleteOptions.of(request.query, read_delete_options(request))
        found, gone = self.writer.delete(served, self._find(route, served), options)
        if not gone or served.returns_deleted:
            return self._written(request, served, found, 200)
        details: dict[str, Any] = {"name": route.name, "group": route.group, "kind": route.plural, "uid": found.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        }
        return _json(status)

    def _subresource(self, request: Request, route: Route, served: Served) -> Response | Stream:
        if route.subresource == "status" and served.status and request.method in ("GET", "PUT", "PATCH"):
            return self._object(request, route, served)
        if route.subresource == "scale" and served.scale is not None:
            return self._scale(request, route, served)
        if route.subresource == "finalize" and route.plural == "namespaces" and request.method == "PUT":
            return self._update(request, route, served)
        if request.method == "POST" and (route.plural, route.subresource) == ("serviceaccounts", "token"):
            return self._token(request, route, served)
        if request.method == "POST" and (route.plural, route.subresource) == ("pods", "eviction"):
            return self._evict(request, route, served)
        if not served.is_custom:
            raise self._not_answered(request, route, served)
        if route.subresource == "status" and served.status:
            raise not_supported(route.group, route.plural, {"POST": "create", "DELETE": "delete"}[request.method])
        raise not_found(route.group, route.plural, route.name)

    def _not_answered(self, request: Request, route: Route, served: Served) -> Rejected:
        """Why a subresource of a built-in kind is not answered."""
        kinds = (each for each in served_resources() if each.info.kind == served.kind)
        known = next((each.subresource(route.subresource) for each in kinds), None)
        if known is None:
            return unknown_path()
        if verb_of(request, route) not in known.verbs:
            return method_not_allowed()
        self._find(route, served)
        if route.subresource in _OF_PROCESSES and route.plural == "pods":
            message = f"pods of a local cluster have no processes: there is nothing to {route.subresource}"
            return Rejected(501, "NotImplemented", message)
        return unknown_path()

    def _token(self, request: Request, route: Route, served: Served) -> Response:
        """A token of a service account: who sends it is that user."""
        account = self._find(route, served).obj
        token = self.users.token_for(f"system:serviceaccount:{route.namespace}:{route.name}")
        return _json(token_request(read_body(request).get("spec") or {}, account, token), 201)

    def _evict(self, request: Request, route: Route, served: Served) -> Response:
        body = read_body(request)
        if (body.get("metadata") or {}).get("name") != route.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = DeleteOptions.of(request.query, body.get("deleteOptions") or {})
        self.writer.delete(served, self._find(route, served), options)
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _scale(self, request: Request, route: Route, served: Served) -> Response:
        old = self._find(route, served)
        current = scale_of(served, old.obj)
        if request.method == "GET":
            return _json(current)
        if request.method == "PATCH" and media_of(request) == APPLY:
            return self._apply_scale(request, route, served)
        if request.method == "PUT":
            desired = decoded_scale(served, read_body(request, "Scale"))
            check_name(desired, route.name)
        elif request.method == "PATCH":
            patch = read_patch(request, media_of(request))
            desired = decoded_scale(served, patched(served, current, media_of(request), patch))
        elif served.is_custom:
            raise not_supported(route.group, route.plural, {"POST": "create", "DELETE": "delete"}[request.method])
        else:
            raise method_not_allowed()
        options = _write_options(request, "UpdateOptions" if request.method == "PUT" else "PatchOptions")
        new = self.writer.update(served, old, scaled(served, old.obj, desired), "scale", options)
        return _json(scale_of(served, new.obj))

    def _apply_scale(self, request: Request, route: Route, served: Served) -> Response:
        config = configuration(read_patch(request, APPLY), SCALE)
        check_name(config, route.name)
        options = _write_options(request, "PatchOptions", is_apply=True)
        found, _ = self.writer.apply(
            served, Name(route.namespace, route.name), scale_configuration(served, config), "scale", options
        )
        return _json(scale_of(served, found.obj))

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _parsed(self, request: Request, served: Served) -> dict[str, Any]:
        """The object of a request."""
        kind = served.kind
        obj: dict[str, Any] = read_body(request, kind.kind)
        self._check_duplicates(request, obj, kind)
        if not obj.get("kind") and served.is_custom:
            text = request.body.decode(errors="replace")
            raise unrecognized(kind.kind, f"Object 'Kind' is missing in '{text}'", request.body)
        obj.setdefault("kind", kind.kind)
        obj.setdefault("apiVersion", kind.api_version)
        self._check_type(obj, served)
        return obj

    def _check_duplicates(self, request: Request, obj: dict[str, Any], kind: Kind) -> None:
        validation = request.query.get("fieldValidation") or "Warn"
        if validation == "Ignore" or request.body[:1] != b"{" or not may_repeat(request.body, obj):
            return
        problems = [f'duplicate field "{path}"' for path in duplicates(request.body)]
        if problems and validation == "Strict":
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {', '.join(problems)}"
            )
        self.writer.warnings += problems

    def _check_type(self, obj: dict[str, Any], served: Served) -> None:
        """Raises Rejected if an object is of another kind than its path."""
        kind, version = served.kind, obj["apiVersion"]
        if served.is_custom:
            if version != kind.api_version:
                raise bad_request(
                    f"the API version in the data ({version}) does not match the expected API version "
                    f"({kind.api_version})"
                )
            if obj["kind"] != kind.kind:
                cause = Cause("FieldValueInvalid", f'Invalid value: "{obj["kind"]}": must be {kind.kind}', "kind")
                name = str((obj.get("metadata") or {}).get("name", ""))
                raise invalid_named(kind.group, obj["kind"], name, [cause])
            return
        problem = self._conversion_problem(obj, served)
        if problem is not None:
            short = str(version).rpartition("/")[2]
            raise bad_request(f'{obj["kind"]} in version "{short}" cannot be handled as a {kind.kind}: {problem}')

    def _conversion_problem(self, obj: Mapping[str, Any], served: Served) -> str | None:
        """Why an object is none of a built-in kind, in the words of the server's decoder."""
        kind, version, name = served.kind, str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        if (version, name) == (kind.api_version, kind.kind):
            return None
        known = (Kind.parse(version, each) for each in (name, name.removesuffix("List")))
        if (version, name) != ("v1", "List") and not any(map(self.registry.of_kind, known)):
            return not_registered(name, version)
        short, group = version.rpartition("/")[2], kind.group.partition(".")[0] or "core"
        return f"converting ({short}.{name}) to ({group}.{kind.kind}): unknown conversion"

    def _written(self, request: Request, served: Served, found: Stored, status: int) -> Response:
        form = _form(request, served)
        check_form(form, served, is_list=False)
        return in_form(form, Response(status, object_bytes(served, found, form)))


def _is_watch(request: Request) -> bool:
    return request.query.get("watch") in _TRUE


def _is_for_people(request: Request) -> bool:
    """Whether somebody reads the answer in a terminal or a browser."""
    asked = request.query.get("pretty")
    if asked is None:
        return request.headers.get("user-agent", "").startswith(_BROWSERS)
    return asked in _TRUE


def _indented(answer: Response) -> Response:
    if not answer.body or not answer.content_type.startswith(JSON_TYPE):
        return answer
    text = orjson.dumps(orjson.loads(answer.body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return replace(answer, body=text)


def _warning(answer: Response | Stream, warnings: list[str]) -> Response | Stream:
    """The answer with a Warning header."""
    header = ", ".join(f"299 - {orjson.dumps(each).decode()}" for each in dict.fromkeys(warnings))
    return replace(answer, headers={**answer.headers, "Warning": header})


def refusal(error: Rejected) -> Response:
    return Response(error.code, orjson.dumps(error.document()), headers=error.headers)


def _form(request: Request, served: Served, *, watches: bool = False) -> Form:
    form = form_of(request.headers.get("accept", ""), is_builtin=not served.is_custom, watches=watches)
    return form if form.name != "Table" else with_included(form, request.query.get("includeObject", ""))


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(status, orjson.dumps(document))


def _needs_namespace(request: Request, route: Route) -> bool:
    return bool(route.name) or request.method in ("POST", "DELETE")


def _write_options(request: Request, options: str, *, is_apply: bool = False) -> WriteOptions:
    return WriteOptions.of(request.query, request.headers.get("user-agent", ""), options, is_apply=is_apply)


def _check_patch_type(served: Served, media: str) -> None:
    if media not in (_PATCH_TYPES if served.is_custom else {*_PATCH_TYPES, STRATEGIC}):
        raise unsupported_media_type(", ".join(_PATCH_TYPES)) if served.is_custom else unsupported_patch_type()


def _check_kind(new: Mapping[str, Any], old: Mapping[str, Any], served: Served) -> None:
    """Raises Rejected if a patch changes the kind of an object."""
    if new.get("kind") != old["kind"]:
        found = str(new.get("kind") or "")
        cause = Cause("FieldValueInvalid", f'Invalid value: "{found}": must be {old["kind"]}', "kind")
        raise invalid_named(served.kind.group, found, old["metadata"]["name"], [cause])
