import type { ParsedScript } from 'unbash'
import { dnsNamed, knownOutputOf, literalWordsOf } from './known-output.ts'

/**
 * Output of a pipe: lists of a known form from which lines are removed, and a column of a table
 * with names that a server made. Other columns hold untrusted text.
 */

type Commands = readonly (readonly string[])[]
type KnownWords = { form: 'numbers' | 'names'; sample: string }

/** Most commands in a pipe through which names are followed. */
export const maxPiped = 8

/** Returns the form of the output of these commands in a pipe; null if it may be anything. */
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

/** Programs that filter whole lines, with options that neither change a line nor add one. */
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
  // Refuses a second operand, which is a file with unknown lines.
  if (isPattern && rest.filter((text) => !/^-/.test(text)).length > 1 && !/^-(?:m|e)$/.test(rest[0] ?? '')) return false
  return Object.hasOwn(filters, name) && filters[name]!.test(rest.join(' '))
}

/**
 * Matches an awk script that picks one column: `1`, `2` or `last`. A condition only chooses among
 * lines.
 */
const picks =
  /^\s*(?:(?:NR\s*(?:>=?|!=|==)\s*\d+|!?\/[\w .|^$-]*\/|\$(?:\d+|NF)\s*(?:==|!=|!?~|[<>]=?)\s*(?:"[\w .-]*"|\d+|\/[\w .|^$-]*\/))\s*(?:(?:&&|\|\|)\s*)?)*\{\s*print\s+\$(1|2|NF)\s*;?\s*\}\s*$/

/** Longest script that is read as picking a column. */
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
  // Accepts the first column as the id and the last as the name; `podman` prints the same.
  if (engineTable.test(whole)) return { '1': word, last: word }
  return sandboxTable.test(whole) ? { '1': word } : null
}

/**
 * Returns the commands of a script that is one pipe of plain commands with exactly known arguments;
 * null for any other script.
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
