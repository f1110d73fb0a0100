-- The health of a custom resource, by the conditions that its operator writes.
local function condition(name)
  for _, each in ipairs((obj.status or {}).conditions or {}) do
    if each.type == name then
      return each
    end
  end
  return {}
end

local ready, paused = condition("Ready"), condition("Paused")
local observed = (obj.status or {}).observedGeneration
if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = ready.message or "being deleted"}
end
if paused.status == "True" then
  return {status = "Suspended", message = paused.message}
end
if ready.status == nil then
  return {status = "Progressing", message = "not reconciled yet"}
end
if observed ~= nil and observed ~= obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not seen the latest change"}
end
if condition("Stalled").status == "True" then
  return {status = "Degraded", message = ready.message}
end
if ready.status == "True" then
  return {status = "Healthy", message = ready.message}
end
return {status = "Progressing", message = ready.message}
