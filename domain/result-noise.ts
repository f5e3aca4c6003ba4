/** Fields that programs compare and that tell nothing of the incident; rows and journals keep them. */
const recordKeeping = new Set([
  ...['audit_hash', 'request_id', 'duration_ms', 'cmd_executed', 'prevHash', 'hash', 'stepKey', 'fingerprint'],
  ...['planDigest', 'stateFingerprint', 'currentFingerprint', 'capabilities'],
])
/** What is the usual way: only that it is otherwise is worth a word. */
const usual: Readonly<Record<string, unknown>> = {
  approval_status: 'auto_approved',
  truncated: false,
  total_is_more: false,
  kernel_thread: false,
  encoding: 'utf8',
  offset: 0,
}
/** Lists that tell something only where they hold something. */
const oftenEmpty = new Set(['pinnedTo', 'forbiddenHosts', 'aliases', 'needs'])
/** An attempt's own key of a write, as the core API repeats it. */
const ownKey = /^inc_[0-9a-z]{26}\.\d+:/

/**
 * What a tool answered without what repeats or tells nothing: fields without a value, digests and request ids, the device where
 * it is the one that was asked, blanks at the ends of lines. It only leaves out, so that every field that is left stands in the
 * row word for word. Equal answers are equal without their noise.
 */
export function withoutNoise(data: unknown): unknown {
  if (typeof data === 'string') return data.replace(/[ \t]{4,}$/gm, '')
  if (Array.isArray(data)) return data.map(withoutNoise)
  if (data === null || typeof data !== 'object') return data
  const kept = Object.entries(data).filter(([key, value]) => !isNoise(key, value, data as Record<string, unknown>))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutNoise(value)]))
}

/** What a row of a log tells its reader; the rest is how rows and plans are kept. */
const toldOfRow = new Set(['seq', 'at', 'attempt', 'actor', 'action', 'kind', 'detail'])
const keptOfPlan = new Set(['createdAt', 'incidentId', 'lowerBound', 'proof'])

function isNoise(key: string, value: unknown, fields: Record<string, unknown>): boolean {
  if ('prevHash' in fields && !toldOfRow.has(key)) return true
  if ('planDigest' in fields && keptOfPlan.has(key)) return true
  if (value === null || value === undefined || recordKeeping.has(key)) return true
  if (key in usual && usual[key] === value) return true
  if (key === 'stderr' && value === '') return true
  if (oftenEmpty.has(key) && Array.isArray(value) && value.length === 0) return true
  if (key === 'key' && typeof value === 'string' && ownKey.test(value)) return true
  return key === 'device' && isOwnDevice(value, fields)
}

/** The device of what the answer is about, under the same name, without another word on it. */
function isOwnDevice(device: unknown, { on, id, node, vm }: Record<string, unknown>): boolean {
  if (typeof device === 'string') return device === (on as { id?: unknown } | undefined)?.id
  const { capabilities: _, id: own, ...more } = device as Record<string, unknown>
  return Object.keys(more).length === 0 && [id, node, vm].includes(own)
}
