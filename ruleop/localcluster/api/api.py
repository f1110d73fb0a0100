"""Answers requests: the routes, the verbs of resources, subresources and reviews."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.kubernetes.builtin.immutable_fields import value_at
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.times import now, timestamp
from ruleop.kubernetes.validation import invalid_value
from ruleop.localcluster.api.bodies import (
    APPLY,
    STRATEGIC,
    check_kind,
    check_name,
    check_namespace,
    decode_unstored,
    of_kind,
    patch_type,
    patched,
    read_body,
    read_configuration,
    read_delete_options,
    read_object,
    read_patch,
    read_unstored,
)
from ruleop.localcluster.api.general import NO_PAGE, General
from ruleop.localcluster.api.requests import (
    TRUE,
    DeleteOptions,
    ListOptions,
    Route,
    WriteOptions,
    continue_token,
    parse_route,
    parse_selection,
    parse_timeout,
    read_token,
    version_of,
)
from ruleop.localcluster.api.responses import (
    PLAIN,
    OpenWatch,
    form_asked,
    json_response,
    list_bytes,
    object_response,
    refusal,
    with_warnings,
)
from ruleop.localcluster.http import Response, ResponseStream
from ruleop.localcluster.kinds import REVIEWS, is_builtin_group
from ruleop.localcluster.object_store import Name, Stored, TooLargeError, TooOldError
from ruleop.localcluster.status_errors import (
    Rejected,
    bad_request,
    conflict,
    expired,
    internal,
    invalid,
    invalid_named,
    method_not_allowed,
    not_found,
    too_large_version,
    unknown_path,
)

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.audit import Users
    from ruleop.localcluster.api.object_writer import ObjectWriter
    from ruleop.localcluster.http import Request
    from ruleop.localcluster.kinds import Registry, ServedKind
    from ruleop.localcluster.object_store import Store


MAX_BODY: Final = 3 * 1024 * 1024
_OF_PROCESSES: Final = ("log", "exec", "attach", "portforward", "proxy")
_PRESERVED: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Api:
    def __init__(self, store: Store, registry: Registry, writer: ObjectWriter, users: Users) -> None:
        self.store, self.registry, self.writer, self.users = store, registry, writer, users
        self.general = General(store, registry)
        self._at: int | None = None  # of the current request

    def handle(self, request: Request, at: int | None = None) -> Response | ResponseStream:
        """`at`: a version of the past, for a read that is stale."""
        self.writer.warnings, self._at = [], at
        if len(request.body) > MAX_BODY:
            message = f"Request entity too large: limit is {MAX_BODY}"
            return refusal(Rejected(413, "RequestEntityTooLarge", message))
        try:
            response = self._response(request)
        except Rejected as error:
            response = refusal(error)
        except (RecursionError, orjson.JSONEncodeError) as error:
            if isinstance(error, orjson.JSONEncodeError) and "Recursion" not in str(error):
                raise
            # A body is not as deep, but the object that a patch makes can be.
            response = refusal(bad_request("exceeded max depth"))
        except TooLargeError as error:
            response = refusal(Rejected(500, "", str(error)))
        return with_warnings(response, self.writer.warnings) if self.writer.warnings else response

    def _response(self, request: Request) -> Response | ResponseStream:
        if "timeout" in request.query and not _is_watch(request):
            parse_timeout(request.query)
        route = parse_route(request.path)
        if route is None:
            return self.general.response(request)
        served = self.registry.get(route.group, route.version, route.plural)
        if served is None or (route.namespace and not served.namespaced):
            if not is_builtin_group(route.group):
                return NO_PAGE
            raise unknown_path()
        if served.is_custom and request.method == "HEAD":
            request = replace(request, method="GET")
        if served.deprecation:
            self.writer.warnings.append(served.deprecation)
        if served.kind.kind in REVIEWS:
            asked = read_unstored(request, served.kind, self.writer.warnings)
            check_namespace(asked, route.namespace, served)
            return json_response(review(served.kind, asked, request.user, self.users), 201)
        if served.namespaced and not route.namespace and (route.name or request.method in ("POST", "DELETE")):
            if served.is_custom:
                return NO_PAGE
            raise unknown_path() if route.name else method_not_allowed()
        if route.subresource:
            return self._subresource(request, route, served)
        if route.name:
            return self._object(request, route, served)
        return self._collection(request, route, served)

    # -- collections --------------------------------------------------------------------------------------------------

    def _collection(self, request: Request, route: Route, served: ServedKind) -> Response | ResponseStream:
        if request.method == "GET":
            if _is_watch(request):
                return self._watch(request, route, served)
            return self._list(request, route, served)
        if request.method == "POST":
            return self._create(request, route, served)
        if request.method == "DELETE" and "deletecollection" in served.verbs:
            return self._delete_collection(request, route, served)
        raise method_not_allowed()

    def _versioned(self, served: ServedKind, route: Route, options: ListOptions) -> tuple[int, list[Stored]]:
        """The objects of a list, and the version of which they are."""
        self._check_reached(options.version)
        version, after = self.store.version, Name("", "")
        if options.token:
            version, after = read_token(options.token, route.namespace, namespaced=served.namespaced)
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
            raise expired("The resourceVersion for the provided list is too old.") from None

    def _check_reached(self, version: int) -> None:
        """Raises Rejected for a version of the future."""
        if version > self.store.version:
            raise too_large_version(version, self.store.version)

    def _list(self, request: Request, route: Route, served: ServedKind) -> Response:
        query, form = request.query, form_asked(request)
        selection, options = parse_selection(query, served), ListOptions.of(query, watches=False)
        number, found = self._versioned(served, route, options)
        version, limit = str(number), options.limit
        if selection is not None:
            found = [each for each in found if selection(each.obj)]
        metadata: dict[str, Any] = {"resourceVersion": version}
        if limit > 0 and len(found) > limit:
            rest, found = len(found) - limit, found[:limit]
            metadata["continue"] = continue_token(number, found[-1].name, route.namespace)
            if selection is None:
                metadata["remainingItemCount"] = rest
        return Response(200, list_bytes(served, found, metadata, form))

    def _watch(self, request: Request, route: Route, served: ServedKind) -> ResponseStream:
        options, form = ListOptions.of(request.query, watches=True), form_asked(request)
        self._check_reached(options.version)
        selection = parse_selection(request.query, served)
        return ResponseStream(OpenWatch(self.store, served, route.namespace, selection, options, form).start)

    def _create(self, request: Request, route: Route, served: ServedKind) -> Response:
        obj = read_object(request, served)
        options = _write_options(request, "CreateOptions")
        return object_response(request, served, self.writer.create(served, route.namespace, obj, options), 201)

    def _delete_collection(self, request: Request, route: Route, served: ServedKind) -> Response:
        options = self._delete_options(request, served)
        selection = parse_selection(request.query, served)
        found = [
            each
            for each in map(served.seen, self.store.all(served.resource, route.namespace))
            if selection is None or selection(each.obj)
        ]
        for each in found:
            self.writer.delete(served, each, options)
        return Response(200, list_bytes(served, found, {"resourceVersion": str(self.store.version)}, PLAIN))

    # -- one object ---------------------------------------------------------------------------------------------------

    def _object(self, request: Request, route: Route, served: ServedKind) -> Response | ResponseStream:
        if request.method == "GET":
            if version := request.query.get("resourceVersion"):
                self._check_reached(version_of(version))
            return object_response(request, served, self._find(route, served), 200)
        if request.method == "PUT":
            return self._update(request, route, served)
        if request.method == "PATCH":
            return self._patch(request, route, served)
        if request.method == "DELETE":
            return self._delete(request, route, served)
        if request.method == "POST" and served.is_custom:
            return self._create(request, route, served)
        raise method_not_allowed()

    def _find(self, route: Route, served: ServedKind) -> Stored:
        name = Name(route.namespace, route.name)
        found = self.store.get(served.resource, name)
        if self._at is not None:
            past = self.store.at(served.resource, self._at, route.namespace, Name("", ""))
            found = next((each for each in past if each.name == name), None)
        if found is None:
            raise not_found(route.group, route.plural, route.name)
        return served.seen(found)

    def _update(self, request: Request, route: Route, served: ServedKind) -> Response:
        obj = read_object(request, served)
        options, name = _write_options(request, "UpdateOptions"), Name(route.namespace, route.name)
        found, made = self.writer.replace(served, name, obj, route.subresource, options)
        return object_response(request, served, found, 201 if made else 200)

    def _patch(self, request: Request, route: Route, served: ServedKind) -> Response:
        media = patch_type(request, served)
        options = _write_options(request, "PatchOptions", is_apply=media == APPLY)
        if media == APPLY:
            return self._apply(request, route, served, options)
        old = self._find(route, served)
        patch = read_patch(request)
        new = dict(patched(served, old.obj, media, patch))
        if media == STRATEGIC:  # is applied to the decoded object, which has no kind
            new |= {"kind": served.kind.kind, "apiVersion": served.kind.api_version}
        elif not served.is_custom:
            new = of_kind(new, served.kind, 422)
        elif route.subresource != "status":  # a write of the status ignores both
            check_kind(new, served, 422)
        return object_response(request, served, self.writer.update(served, old, new, route.subresource, options), 200)

    def _apply(self, request: Request, route: Route, served: ServedKind, options: WriteOptions) -> Response:
        config = read_configuration(request, served.kind)
        key = Name(route.namespace, route.name)
        found, made = self.writer.apply(served, key, config, route.subresource, options)
        return object_response(request, served, found, 201 if made else 200)

    def _delete_options(self, request: Request, served: ServedKind) -> DeleteOptions:
        options = DeleteOptions.of(request.query, read_delete_options(request))
        if served.strategy.orphans and not options.propagation:
            self.writer.warnings.append(_PRESERVED)
            return replace(options, propagation="Orphan")
        return options

    def _delete(self, request: Request, route: Route, served: ServedKind) -> Response:
        options = self._delete_options(request, served)
        found, gone = self.writer.delete(served, self._find(route, served), options)
        if not gone or served.returns_deleted:
            return object_response(request, served, found, 200)
        details: dict[str, Any] = {"name": route.name, "group": route.group, "kind": route.plural, "uid": found.uid}
        return json_response({**_SUCCESS, "details": {name: value for name, value in details.items() if value}})

    def _subresource(self, request: Request, route: Route, served: ServedKind) -> Response | ResponseStream:
        if route.subresource == "status" and served.status_subresource and request.method in ("GET", "PUT", "PATCH"):
            return self._object(request, route, served)
        if route.subresource == "scale" and served.scale.replicas:
            return self._scale(request, route, served)
        if route.subresource == "finalize" and route.plural == "namespaces" and request.method == "PUT":
            return self._update(request, route, served)
        if request.method == "POST" and (route.plural, route.subresource) == ("serviceaccounts", "token"):
            return self._token(request, route, served)
        if request.method == "POST" and (route.plural, route.subresource) == ("pods", "binding"):
            binding = read_binding(request, route, served, self.writer.warnings)
            pod = bound(self._find(route, served).obj, binding)
            if "dryRun" not in request.query:
                self.store.put(served.resource, pod)
            return json_response({**_SUCCESS, "code": 201}, 201)
        if route.subresource in _OF_PROCESSES and route.plural == "pods":
            self._find(route, served)
            message = f"pods of a local cluster have no processes: there is nothing to {route.subresource}"
            raise Rejected(501, "NotImplemented", message)
        if route.subresource in {each.name for each in served.subresources}:
            raise method_not_allowed()
        raise not_found(route.group, route.plural, route.name) if served.is_custom else unknown_path()

    def _token(self, request: Request, route: Route, served: ServedKind) -> Response:
        asked = read_unstored(request, TOKEN_REQUEST, self.writer.warnings)
        check_namespace(asked, route.namespace, served)
        account = self._find(route, served).obj
        token = self.users.token_for(f"system:serviceaccount:{route.namespace}:{route.name}")
        return json_response(token_request(asked, account, token), 201)

    def _scale(self, request: Request, route: Route, served: ServedKind) -> Response:
        if request.method not in ("GET", "PUT", "PATCH"):
            raise method_not_allowed()
        old = self._find(route, served)
        current = scale_of(served, old.obj)
        if request.method == "GET":
            return json_response(current)
        if request.method == "PATCH" and patch_type(request, served) == APPLY:
            return self._apply_scale(request, route, served)
        if request.method == "PUT":
            desired = decode_unstored(read_body(request), SCALE)
            check_name(desired, route.name)
        else:
            patch = patched(served, current, patch_type(request, served), read_patch(request))
            desired = decode_unstored(patch, SCALE)
        options = _write_options(request, "UpdateOptions" if request.method == "PUT" else "PatchOptions")
        new = self.writer.update(served, old, scaled(served, old.obj, desired), "scale", options)
        return json_response(scale_of(served, new.obj))

    def _apply_scale(self, request: Request, route: Route, served: ServedKind) -> Response:
        config = read_configuration(request, SCALE)
        config["metadata"] = {"name": route.name, **(config.get("metadata") or {})}
        check_name(config, route.name)
        options = _write_options(request, "PatchOptions", is_apply=True)
        found, _ = self.writer.apply(
            served,
            Name(route.namespace, route.name),
            scale_configuration(served, config),
            "scale",
            options,
        )
        return json_response(scale_of(served, found.obj))


def _is_watch(request: Request) -> bool:
    return request.query.get("watch") in TRUE


def _write_options(request: Request, options: str, *, is_apply: bool = False) -> WriteOptions:
    return WriteOptions.of(request.query, request.headers.get("user-agent", ""), options, is_apply=is_apply)


# -- subresources and reviews ------------------------------------------------------------------------------------------
#
# The scale: the replicas of an object as autoscaling/v1 Scale. Bindings: a scheduler's choice of a node for a pod.
# Tokens of service accounts: a client that sends one acts as that account. Access reviews and reviews of tokens, which
# are answered without being stored: every client that has the address of the server may do everything.


SCALE: Final = Kind("autoscaling", "v1", "Scale")


def scale_of(served: ServedKind, obj: Object) -> dict[str, Any]:
    metadata = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    status: dict[str, Any] = {"replicas": value_at(obj, served.scale.status_replicas) or 0}
    if selector := _selector(served, obj):
        status["selector"] = selector
    replicas = value_at(obj, served.scale.replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scale_configuration(served: ServedKind, scale: Object) -> dict[str, Any]:
    """The configuration of an object that applies what a Scale configures. Raises Rejected."""
    if served.is_custom:  # a mistake of Kubernetes
        raise internal("request to convert CR to an invalid group/version: autoscaling/v1")
    kind, replicas = served.kind, (decode_unstored(scale, SCALE).get("spec") or {}).get("replicas")
    config = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": scale["metadata"]["name"]}}
    return config if replicas is None else _with(config, served.scale.replicas.split("."), replicas)


def scaled(served: ServedKind, obj: Object, scale: Object) -> dict[str, Any]:
    """The object with the replicas of a Scale, which is decoded."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        name = obj["metadata"]["name"]
        if served.is_custom:
            error = invalid_value(".spec.replicas", replicas, "should be a non-negative integer")
            raise invalid(served.kind, name, [error])
        error = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_named("autoscaling", "Scale", name, [error])
    found = _with(obj, served.scale.replicas.split("."), replicas)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        found = {**found, "metadata": {**found["metadata"], "resourceVersion": version}}
    return found


def _with(obj: Any, names: list[str], value: Any) -> dict[str, Any]:
    first, *rest = names
    inner = obj if isinstance(obj, dict) else {}
    return {**inner, first: _with(inner.get(first), rest, value) if rest else value}


def _selector(served: ServedKind, obj: Object) -> str:
    labels = value_at(obj, served.scale.selector)
    if served.is_custom:
        return labels if isinstance(labels, str) else ""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if isinstance(labels, dict) else ""


_BINDING: Final = Kind("", "v1", "Binding")


def read_binding(request: Request, route: Route, served: ServedKind, warnings: list[str]) -> dict[str, Any]:
    """The Binding in the body of a request. Raises Rejected."""
    binding = read_unstored(request, _BINDING, warnings)
    check_namespace(binding, route.namespace, served)
    if (binding.get("metadata") or {}).get("name") != route.name:
        raise bad_request("name in URL does not match name in Binding object")
    if not (binding.get("target") or {}).get("name"):
        raise internal("target.name: Required value")
    return binding


def bound(pod: Object, binding: Object) -> dict[str, Any]:
    """The pod on the node that a Binding names. Raises Rejected if it has one."""
    if node := pod["spec"].get("nodeName"):
        name = pod["metadata"]["name"]
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{node}"')
    metadata, given = dict(pod["metadata"]), binding["metadata"]
    for field in ("labels", "annotations"):
        if given.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **given[field]}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}}


_LONGEST: Final = 1 << 32  # seconds
TOKEN_REQUEST: Final = Kind("authentication.k8s.io", "v1", "TokenRequest")


def token_request(asked: Object, account: Object, token: str) -> dict[str, Any]:
    """The response to a TokenRequest, which is decoded. The token does not expire before the cluster ends."""
    metadata = {each: account["metadata"][each] for each in ("name", "namespace")}
    spec = dict(asked.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or ["https://kubernetes.default.svc"]
    spec["expirationSeconds"] = min(spec.get("expirationSeconds") or 3600, _LONGEST)
    return {
        "kind": TOKEN_REQUEST.kind,
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {**metadata, "creationTimestamp": now()},
        "spec": {"boundObjectRef": None, **spec},
        "status": {"token": token, "expirationTimestamp": timestamp(time.time() + spec["expirationSeconds"])},
    }


_EVERYTHING: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def review(kind: Kind, asked: Object, user: str, users: Users) -> dict[str, Any]:
    """The response to a review, which is decoded."""
    spec, status = asked.get("spec") or {}, dict[str, Any]()
    match kind.kind:
        case "SelfSubjectReview":
            status = {"userInfo": _user_info(user)}
        case "TokenReview" if (owner := users.name_of(spec.get("token", ""))) is not None:
            status = {"authenticated": True, "user": _user_info(owner)}
        case "TokenReview":
            status = {"user": {}, "error": "invalid bearer token"}
        case "SelfSubjectRulesReview":
            anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            status = {"resourceRules": [_EVERYTHING], "nonResourceRules": [anywhere], "incomplete": False}
        case _:
            status = {"allowed": True, "reason": "a local cluster allows everything"}
    found = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec, "status": status}
    return found if spec else {name: value for name, value in found.items() if name != "spec"}


def _user_info(user: str) -> dict[str, Any]:
    groups = ["system:masters", "system:authenticated"]
    account = user.removeprefix("system:serviceaccount:")
    if account != user:
        namespace = account.partition(":")[0]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"username": user, "groups": groups}
