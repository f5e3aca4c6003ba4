import { holdsName, type Name } from './actions.ts'
import { figuresIn } from './numbers.ts'
import type { CitableWrite } from './rows.ts'

/** Steps of a plan that held although it failed: words about them, by name or number. */

/**
 * `named`: rows' words on steps that held; `held`, `failed`: those of the newest row with steps.
 */
type Steps = { named: string[]; held: string[]; failed: string[] }

/**
 * Whether steps that held make this true of a failed write: each named one held; or it counts no
 * more than held, or calls itself a part; and all that it leaves out by name failed.
 */
export function partHeld(write: CitableWrite, names: readonly Name[], text: string): boolean {
  const { named, held, failed } = stepsOf(write)
  if (held.length === 0) return false
  const isIn = (steps: readonly string[]) => (name: Name) => steps.some((step) => holdsName(step, name.text))
  if (excepting.test(text) && names.length > 0)
    return failed.length === names.length && names.every(isIn(failed)) && !names.some(isIn(held))
  return names.length > 0 ? names.every(isIn(named)) : isShare(text, doneOf(held, text), held.length + failed.length)
}

/** Steps that held and did this: a migrated VM moved while it ran, a started one did not. */
const doneOf = (held: readonly string[], text: string): number =>
  /\bmigrat/.test(text) ? held.filter((step) => /migrat|moved/.test(step)).length : held.length

const excepting = /\b(?:except(?:ing)?|apart from)\b/
const inPart = /\b(?:in part|partly|partially|some of|not all of)\b/
const mostOf = /\bmost of\b/
const first = /^\W*(?:only |just )?one\b/

/** "Three of the four steps", "two VMs", "in part": so many of all steps held. */
function isShare(text: string, held: number, all: number): boolean {
  const counts = figuresIn(text)
    .filter(({ unit, decimals }) => unit === null && decimals === 0)
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
  const [count, ...others] = first.test(text) ? [1, ...counts] : counts
  if (excepting.test(text)) return count !== undefined && count === all - held
  if (count !== undefined) return count <= held && others.every((other) => other === all)
  return held < all && (inPart.test(text) || (mostOf.test(text) && 2 * held > all))
}

/** The steps of a plan, each as its rows tell it. */
function stepsOf(write: CitableWrite): Steps {
  const listed = write.parts.map((part) => {
    const { items, text, leaves } = part.document()
    return items.flatMap((item) => {
      const status = leaves.find((leaf) => leaf.item === item && /^(?:status|outcome)$/.test(leaf.path.at(-1) ?? ''))
      if (!item.list || !status) return []
      const isHeld = /^(?:ok|done|held)$/i.test(String(status.value))
      return [{ text: text.slice(item.start, item.end), isHeld }]
    })
  })
  const newest = listed.findLast((steps) => steps.length > 0) ?? []
  const told = (steps: readonly { text: string; isHeld: boolean }[], held: boolean) =>
    steps.flatMap(({ text, isHeld }) => (isHeld === held ? [text] : []))
  // The answer says where a VM came from, its verification where it is: one may lack a name.
  return { named: told(listed.flat(), true), held: told(newest, true), failed: told(newest, false) }
}
