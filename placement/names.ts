import { hiddenCharacter, nameOfCharacter } from '../domain/inert-text.ts'
import type { Flaw } from './certificate.ts'

/**
 * Finds names that look alike or hide characters. With look-alike names, one group would silently
 * become two, and a VM on an approval could be mistaken for another.
 */

/** Letters of other scripts, each before the Latin letter that looks the same. */
const twins =
  'аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwҽeАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSοoαaνvρpιiκkυuΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXıiɑaɡgᴏo‐-‑-‒-–-—-−-'
const twinOf = new Map(
  Array.from({ length: [...twins].length / 2 }, (_, at) => [...twins].slice(2 * at, 2 * at + 2) as [string, string]),
)

const unseen = new RegExp(`${hiddenCharacter('\\u0000-\\u001f')}|[^\\S ]`, 'u')

/**
 * Fields with names of one kind. A name may be missing. `pathOf` returns the path of a field by its
 * index.
 */
type NameField = { kind: string; names: (string | null | undefined)[]; pathOf: (index: number) => string }

/**
 * Finds names of one kind that have hidden characters or look alike. `kind` is shown to people:
 * `host`, `VM`.
 */
export function findNameFlaws({ kind, names, pathOf }: NameField): Flaw[] {
  const flaws: Flaw[] = []
  const first = new Map<string, number>()
  const known = new Set<string>()
  for (const [index, name] of names.entries()) {
    if (name == null || known.has(name)) continue
    known.add(name)
    const tell = (message: string) => flaws.push({ path: pathOf(index), message })
    const hidden = unseen.exec(name)?.[0]
    const look = lookOf(name)
    const other = first.get(look)
    if (hidden) tell(`the name has an invisible character, ${nameOfCharacter(hidden)}`)
    else if (name.trim() === '') tell('the name has only spaces')
    else if (name.trim() !== name) tell('the name begins or ends with a space')
    else if (other === undefined) first.set(look, index)
    else {
      const twin = names[other] as string
      const what = `${kind} ${name} looks like ${kind} ${twin} (${pathOf(other)}), but is a different name`
      tell(`${what}: ${differenceOf(name, twin)}`)
    }
  }
  return flaws
}

/** Returns a name with each letter replaced by the one that it looks like. */
function lookOf(name: string): string {
  if (/^[ -~]*$/.test(name)) return name
  return Array.from(name.normalize('NFKC'), (letter) => twinOf.get(letter) ?? letter).join('')
}

/** Formats `it has … where the other has …` for the first position where two names differ. */
function differenceOf(name: string, other: string): string {
  const [ours, theirs] = [[...name], [...other]]
  const at = ours.findIndex((letter, index) => letter !== theirs[index])
  const say = (letter: string | undefined) =>
    letter === undefined ? 'nothing' : /^[!-~]$/.test(letter) ? letter : nameOfCharacter(letter)
  return `it has ${say(ours[at < 0 ? ours.length : at])} where the other has ${say(theirs[at < 0 ? ours.length : at])}`
}
