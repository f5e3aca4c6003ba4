/** A part of JSON by its path, as `items[0].name`, `items[*].state` or `labels["app.kubernetes.io/name"]`. */
type Step = { key: string } | { index: number } | { all: true }

export type Selected = {
  value: unknown
  /** Where nothing was found: names at the place where the path ended, and that place. */
  missing: { at: string; names: string[] } | null
}

const mostSteps = 12
const step =
  /(?:^|\.)([A-Za-z_$@][\w$@-]*)|(?:\[(?=\d+\])|\.(?=\d+(?![\w-])))(\d{1,6})\]?|\[\*?\]|\["((?:[^"\\]|\\["\\])*)"\]/y

/** The steps of a path, or null where it cannot be read. `$` is the whole. */
function readSteps(path: string): Step[] | null {
  const steps: Step[] = []
  const text = path.replace(/^\$(?=[.[]|$)\.?/, '')
  for (let at = 0; at < text.length; at = step.lastIndex) {
    step.lastIndex = at
    const found = step.exec(text)
    if (!found || steps.length === mostSteps) return null
    const [, name, index, quoted] = found
    if (name !== undefined) steps.push({ key: name })
    else if (index !== undefined) steps.push({ index: Number(index) })
    else if (quoted !== undefined) steps.push({ key: quoted.replace(/\\(["\\])/g, '$1') })
    else steps.push({ all: true })
  }
  return steps
}

/** What the path selects. Null: the path cannot be read. `[*]` takes every item, and leaves out those that lack what follows. */
export function selectPart(value: unknown, path: string): Selected | null {
  const steps = readSteps(path)
  if (steps === null) return null
  let found: unknown[] = [value]
  let isMany = false
  for (const [at, each] of steps.entries()) {
    const next = found.flatMap((one) => take(one, each))
    if (next.length === 0) {
      const place = steps.slice(0, at).map(writeStep).join('').slice(0, 80).toWellFormed()
      return { value: isMany ? [] : null, missing: { at: place || 'the answer', names: listNames(found[0]) } }
    }
    isMany ||= 'all' in each
    found = next
  }
  return { value: isMany ? found : found[0], missing: null }
}

function take(value: unknown, wanted: Step): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if ('all' in wanted) return Array.isArray(value) ? value : Object.values(value)
  if ('index' in wanted) return Array.isArray(value) && wanted.index < value.length ? [value[wanted.index]] : []
  return Object.hasOwn(value, wanted.key) && !Array.isArray(value)
    ? [(value as Record<string, unknown>)[wanted.key]]
    : []
}

const writeStep = (each: Step): string => ('key' in each ? `.${each.key}` : 'index' in each ? `[${each.index}]` : '[*]')

const mostNames = 20

function listNames(value: unknown): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : [`[0] to [${value.length - 1}]`]
  if (typeof value !== 'object' || value === null) return []
  return Object.keys(value)
    .slice(0, mostNames)
    .map((name) => name.slice(0, 60).toWellFormed())
}
