import { coversResource, faultOfPattern } from './decision-right.ts'
import { type Hours, isWithin, readHours } from './hours.ts'

/**
 * People to ask one after another, in the given hours and about the given resources. Null stands
 * for any hour, or for all resources.
 */
export type OnCallRule = { hours: Hours | null; resources: string[] | null; people: string[] }

type ParsedRules = { ok: true; rules: OnCallRule[] } | { ok: false; reason: string }

const maxPeople = 20

/**
 * Parses the setting `approval.on_call`, the list of people to ask. The rules are separated by
 * semicolons or line breaks, and the first that fits is used:
 *
 *   22:00-07:00 Europe/Oslo database:* -> anna ben
 *   -> cleo
 */
export function parseOnCall(text: string): ParsedRules {
  const rules: OnCallRule[] = []
  for (const line of text.split(/[;\n]/).map((each) => each.trim())) {
    if (line === '') continue
    const parsed = parseRule(line)
    if (typeof parsed === 'string') return { ok: false, reason: `"${line.slice(0, 80)}" ${parsed}` }
    rules.push(parsed)
  }
  const covered = rules.findIndex(({ hours, resources }) => hours === null && resources === null)
  if (covered >= 0 && covered < rules.length - 1)
    return { ok: false, reason: `rule ${covered + 1} always matches, so later rules never apply: put this rule last` }
  return { ok: true, rules }
}

/** Parses one rule; returns an error text if the rule is invalid. */
function parseRule(line: string): OnCallRule | string {
  const [when = '', who, ...more] = line.split('->')
  const people = (who ?? '').split(/[\s,]+/).filter(Boolean)
  if (people.length === 0 || more.length > 0) return 'is not of the form HOURS ZONE KIND:ID -> PERSON PERSON'
  if (people.length > maxPeople) return `names more than ${maxPeople} people`
  if (new Set(people).size < people.length) return 'names a person twice'
  const words = when.split(/[\s,]+/).filter(Boolean)
  const hours = readHours(words[0] ?? '', words[1] ?? '')
  if (hours === null) return withResources(null, words, people)
  return typeof hours === 'string' ? hours : withResources(hours, words.slice(2), people)
}

function withResources(hours: Hours | null, resources: string[], people: string[]): OnCallRule | string {
  for (const each of resources) {
    const fault = faultOfPattern(each)
    if (fault) return `holds "${each}", which ${fault}`
  }
  return { hours, resources: resources.length > 0 ? resources : null, people }
}

/**
 * Lists in order the people to ask about a call that writes to `targets`; empty if no rule fits.
 * The resources of a rule, if it names any, must cover all targets.
 */
export function listOnCall(
  rules: readonly OnCallRule[],
  { targets, at }: { targets: readonly { kind: string; id: string }[]; at: string },
): string[] {
  const fitting = rules.find(
    ({ hours, resources }) =>
      (hours === null || isWithin(hours, at)) &&
      (resources === null || (targets.length > 0 && targets.every((target) => coversResource(resources, target)))),
  )
  return fitting?.people ?? []
}
