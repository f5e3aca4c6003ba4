import { hiddenCharacter, nameOfCharacter } from '../domain/inert-text.ts'
import type { Flaw } from './certificate.ts'

/**
 * Names that look alike or hide something. A group with a look-alike name would silently be two,
 * and a VM read on an approval another one.
 */

/** Letters of other scripts, each before the Latin one that it is printed like. */
const twins =
  'аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwҽeАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSοoαaνvρpιiκkυuΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXıiɑaɡgᴏo‐-‑-‒-–-—-−-'
const twinOf = new Map(
  Array.from({ length: [...twins].length / 2 }, (_, at) => [...twins].slice(2 * at, 2 * at + 2) as [string, string]),
)

const unseen = new RegExp(`${hiddenCharacter('\\u0000-\\u001f')}|[^\\S ]`, 'u')

/** A field of many, each of which may have a name: where it stands, by its number. */
type NameField = { kind: string; names: (string | null | undefined)[]; pathOf: (index: number) => string }

/** Names of a kind with hidden characters, or alike. `kind`, for people: `host`, `VM`. */
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
    if (hidden) tell(`it holds ${nameOfCharacter(hidden)}, which nobody sees`)
    else if (name.trim() === '') tell('it holds nothing but blanks')
    else if (name.trim() !== name) tell('it begins or ends with a blank')
    else if (other === undefined) first.set(look, index)
    else {
      const twin = names[other] as string
      const what = `${kind} ${name} looks like ${kind} ${twin} (${pathOf(other)}), and is another`
      tell(`${what}: ${differenceOf(name, twin)}`)
    }
  }
  return flaws
}

/** What a person sees of a name. */
function lookOf(name: string): string {
  if (/^[ -~]*$/.test(name)) return name
  return Array.from(name.normalize('NFKC'), (letter) => twinOf.get(letter) ?? letter).join('')
}

/** `\u0430 stands for a`: the first place where two names of one look differ. */
function differenceOf(name: string, other: string): string {
  const [ours, theirs] = [[...name], [...other]]
  const at = ours.findIndex((letter, index) => letter !== theirs[index])
  const say = (letter: string | undefined) =>
    letter === undefined ? 'nothing' : /^[!-~]$/.test(letter) ? letter : nameOfCharacter(letter)
  return `${say(ours[at < 0 ? ours.length : at])} stands where the other has ${say(theirs[at < 0 ? ours.length : at])}`
}
