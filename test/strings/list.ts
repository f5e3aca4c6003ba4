import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from '@babel/parser'

/**
 * Folders whose texts reach people or the model. Those who change migrations, benches and tests
 * read theirs.
 */
const folders =
  'activities api cli clients db domain effects ingest knowledge lab mesh model notify package placement prompts safety sources start tools web worker workflows'

/** Folders of more than ten minutes, cut where a letter begins. */
const cuts: Record<string, string> = {
  'api-routes': 'aehjpst',
  'safety-command': 'aegmpw',
  cli: 'adlrs',
  domain: 'adijpr',
  'sources-databases': 'amp',
  'mesh-agent': 'acmr',
}

/**
 * Lists the code's texts for people or the model, by room: a folder, or a folder in one. Prose
 * stands there, a file at a time in the code's order, `{…}` for a value. Leaves out what programs
 * read (SQL, styles, names, patterns).
 */
export function listStrings(): Map<string, string> {
  const rooms = new Map<string, string[]>()
  for (const folder of folders.split(' '))
    for (const file of filesOf(folder)) {
      const texts = stringsOf(file)
      if (texts.length === 0) continue
      const room = roomOf(file)
      rooms.set(room, [...(rooms.get(room) ?? []), `## ${file}`, ...texts, ''])
    }
  return new Map([...rooms].map(([room, lines]) => [room, lines.join('\n')]))
}

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/node_modules|^dist/.test(file))
    .map((file) => join(folder, file))
    .sort()

function roomOf(file: string): string {
  const [top = '', second = '', third] = file.split('/')
  const folder = third === undefined ? top : `${top}-${second}`
  const letter = (third ?? second)[0] ?? ''
  const cut = [...(cuts[folder] ?? '')].filter((from) => from <= letter).at(-1)
  return cut ? `${folder}-${cut}` : folder
}

type Node = { type: string } & Record<string, unknown>

function stringsOf(file: string): string[] {
  const plugins = file.endsWith('.tsx') ? (['typescript', 'jsx'] as const) : (['typescript'] as const)
  const text = readFileSync(file, 'utf8')
  const { program } = parse(text, { sourceType: 'module', plugins: [...plugins], attachComment: false })
  const found: string[] = []
  const visit = (node: Node): void => {
    if (isForPrograms(node)) return
    const said = textOf(node)?.replace(/\s+/g, ' ').trim()
    if (said && isProse(said)) found.push(said)
    for (const value of Object.values(node)) for (const each of [value].flat()) if (isNode(each)) visit(each)
  }
  visit(program as unknown as Node)
  return [...new Set(found)]
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

function textOf(node: Node): string | null {
  if (node.type === 'StringLiteral' || node.type === 'JSXText') return String(node.value)
  if (node.type !== 'TemplateLiteral') return null
  return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('{…}')
}

/** Imports, types, SQL and whatever else a tag reads, and what styles a page. */
function isForPrograms({ type, name }: Node): boolean {
  if (/^(Import|ExportAll|TaggedTemplate|TSTypeAlias|TSInterface|TSLiteral)/.test(type)) return true
  return type === 'JSXAttribute' && /^(className|style|d|viewBox|points)$/.test(String((name as Node).name))
}

/** Three words that are words, or two that begin as a sentence or a title does. */
function isProse(text: string): boolean {
  const words = text.split(' ').filter((word) => /^["'(“]?[A-Za-z][a-z’']*[.,:;!?)"'”…]*$/.test(word))
  return words.length >= 3 || (words.length === 2 && /^[A-Z]/.test(text))
}
