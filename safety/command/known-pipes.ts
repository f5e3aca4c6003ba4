import type { ParsedScript } from 'unbash'
import { dnsNamed, knownOutputOf, literalWordsOf } from './known-output.ts'

/**
 * Output of a pipe: lists of known form that lose lines, and a table's column that a server makes
 * of names. Other columns hold strangers' text.
 */

type Commands = readonly (readonly string[])[]
type KnownWords = { form: 'numbers' | 'names'; sample: string }

/** Nobody hands names on through more commands than these. */
export const maxPiped = 8

/** What these commands print, one after another; null where that may be anything. */
export function outputOfPipe(commands: Commands): KnownWords | null {
  const last = commands.at(-1)
  if (!last || commands.length > maxPiped) return null
  const before = commands.slice(0, -1)
  if (before.length === 0) return knownOutputOf(last)
  if (losesLines(last)) return outputOfPipe(before)
  const column = columnOf(last)
  const table = column === null ? null : tableOf(before)
  const sample = column === null ? undefined : table?.[column]
  return sample === undefined ? null : { form: 'names', sample }
}

/** Filters of whole lines, with options that neither change a line nor add one. */
const filters: Readonly<Record<string, RegExp>> = {
  grep: /^(?:-[Ewivxs]+ |-m ?\d+ |-e )*(?!-)\S.*$/,
  egrep: /^(?:-[wivxs]+ )*(?!-)\S.*$/,
  head: /^(?:-n ?-?\d+|-\d+)?$/,
  tail: /^(?:-n ?\+?\d+|-\d+)?$/,
  sort: /^(?:-[rnuVfk0-9,]+ ?)*$/,
  uniq: /^(?:-[ud]+)?$/,
  tac: /^$/,
}

function losesLines([name = '', ...rest]: readonly string[]): boolean {
  const isPattern = name === 'grep' || name === 'egrep'
  // A second operand is a file, whose lines nobody knows.
  if (isPattern && rest.filter((text) => !/^-/.test(text)).length > 1 && !/^-(?:m|e)$/.test(rest[0] ?? '')) return false
  return Object.hasOwn(filters, name) && filters[name]!.test(rest.join(' '))
}

/** Which column is left: `1`, `2` or `last`. A condition chooses among lines and prints nothing. */
const picks =
  /^\s*(?:(?:NR\s*(?:>=?|!=|==)\s*\d+|!?\/[\w .|^$-]*\/|\$(?:\d+|NF)\s*(?:==|!=|!?~|[<>]=?)\s*(?:"[\w .-]*"|\d+|\/[\w .|^$-]*\/))\s*(?:(?:&&|\|\|)\s*)?)*\{\s*print\s+\$(1|2|NF)\s*;?\s*\}\s*$/

/** Nobody writes more to pick a column. */
const maxScript = 300

type Column = '1' | '2' | 'last'

function columnOf([name, ...rest]: readonly string[]): Column | null {
  const whole = rest.join(' ')
  if (name === 'cut') return /^-d ? -f ?1$/.test(whole) || /^-f ?1 -d ? ?$/.test(whole) ? '1' : null
  if (!/^[gmn]?awk$/.test(name ?? '') || rest.length !== 1 || whole.length > maxScript) return null
  const found = picks.exec(whole)?.[1]
  return found === undefined ? null : found === 'NF' ? 'last' : (found as Column)
}

type Table = Partial<Record<Column, string>>
const word = 'a1'

const option =
  '(?: (?:-n ?[\\w-]+|--namespace[= ][\\w-]+|-A|--all-namespaces|-l [\\w./=,!-]+|--selector[= ][\\w./=,!-]+|--field-selector[= ][\\w./=,!-]+|--no-headers|-o ?wide|--sort-by[= ][\\w.{}[\\]]+))*'
const clusterTable = new RegExp(`^(?:kubectl|oc)${option} get${option} (?:${dnsNamed})${option}$`)
const engineTable =
  /^(?:docker|podman|nerdctl) (?:ps|container ls)(?: (?:-a|--all|-l|-n \d+|-f [\w=.-]+|--filter[= ][\w=.-]+))*$/
const sandboxTable =
  /^crictl (?:ps|pods)(?: (?:-a|--all|--name [\w-]+|--namespace [\w-]+|--state \w+|--label [\w./=-]+))*$/

function tableOf(commands: Commands): Table | null {
  const [first, ...rest] = commands
  if (!first || first.some((text) => /\s/.test(text)) || !rest.every(losesLines)) return null
  const whole = first.join(' ')
  if (clusterTable.test(whole))
    return / (?:-A|--all-namespaces)(?: |$)/.test(whole) ? { '1': word, '2': word } : { '1': word }
  // An id, and behind all else the name; `podman` prints it so as well.
  if (engineTable.test(whole)) return { '1': word, last: word }
  return sandboxTable.test(whole) ? { '1': word } : null
}

/**
 * Commands of a script that is one pipe of plain commands, each word known to the letter; null for
 * others.
 */
export function onlyPipeOf(script: ParsedScript): string[][] | null {
  const [statement, another] = script.commands
  if (!statement || another || statement.background) return null
  const { command } = statement
  if (command.type === 'Command') {
    const words = literalWordsOf(command)
    return words && [words]
  }
  if (command.type !== 'Pipeline' || command.prefixes.length > 0 || command.operators.some((each) => each !== '|'))
    return null
  const commands: string[][] = []
  for (const each of command.commands) {
    const words = each.type === 'Command' ? literalWordsOf(each) : null
    if (!words) return null
    commands.push(words)
  }
  return commands
}
