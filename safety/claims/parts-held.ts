import { holdsName, type Name } from './actions.ts'
import { figuresIn } from './numbers.ts'
import type { CitableWrite } from './rows.ts'

/**
 * Finds the steps of a failed plan that held, for texts that mention these steps by name or number.
 */

/**
 * `named`: texts of rows about steps that held. `held` and `failed`: steps of the newest row that
 * has steps.
 */
type Steps = { named: string[]; held: string[]; failed: string[] }

/**
 * Whether this text is true of a failed write, by the steps that held. Either each step that the
 * text names held, or the text counts at most as many steps as held, or the text says "in part".
 * Every step that the text excludes by name must have failed.
 */
export function partHeld(write: CitableWrite, names: readonly Name[], text: string): boolean {
  const { named, held, failed } = stepsOf(write)
  if (held.length === 0) return false
  const isIn = (steps: readonly string[]) => (name: Name) => steps.some((step) => holdsName(step, name.text))
  if (excepting.test(text) && names.length > 0)
    return failed.length === names.length && names.every(isIn(failed)) && !names.some(isIn(held))
  return names.length > 0 ? names.every(isIn(named)) : isShare(text, doneOf(held, text), held.length + failed.length)
}

/**
 * Counts the steps of this kind that held: a migrated VM was moved while it ran, a started one was
 * not.
 */
const doneOf = (held: readonly string[], text: string): number =>
  /\bmigrat/.test(text) ? held.filter((step) => /migrat|moved/.test(step)).length : held.length

const excepting = /\b(?:except(?:ing)?|apart from)\b/
const inPart = /\b(?:in part|partly|partially|some of|not all of)\b/
const mostOf = /\bmost of\b/
const first = /^\W*(?:only |just )?one\b/

/**
 * Whether a share in the text fits the steps that held: "three of the four steps", "two VMs", "in
 * part".
 */
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

/** Reads the steps of a plan from its rows. */
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
  // Joins the names of a step from all rows, because each row may lack a name: the answer names the
  // host that a VM came from, and the verification names the host where the VM is now.
  return { named: told(listed.flat(), true), held: told(newest, true), failed: told(newest, false) }
}
