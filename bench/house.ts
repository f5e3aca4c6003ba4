import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { parse } from '@babel/parser'

/** Words that an on-call engineer does not say: archaic, folksy, or private names. */
export const folksyWords =
  /\b(whoever|nobody's|somebody's|anew|afresh|heed(s|ed)?|mend(s|ed|ing)?|errands?|of its own|of their own|it is said|is told|are told|in vain|for want of|(?<!there )is none|bore|dear|hither|thereby|whence|lest|forthwith)\b/i

/** Words that refer to documents outside of the repository. */
export const foreignReferences = /\b(seeds? \d{3}|design (section|chapter|\d)|first design|founder|session \d)\b/i

/**
 * Lists the comment lines that contain one of the words, with their places. Reads line by line, so
 * it misses a phrase that is on two lines.
 */
export function findWords(words: RegExp, { path, text }: { path: string; text: string }): string[] {
  return text.split('\n').flatMap((line, at) => {
    const comment = /^\s*(?:\/\/|\/?\*)(.*)|(?:^|\s)\/\/\s(.*)/.exec(line)
    return comment && words.test(comment[1] ?? comment[2] ?? '') ? [`${path}:${at + 1} ${line.trim()}`] : []
  })
}

/** Words at the beginning of a comment after which the reader has to wait for the subject. */
const lateSubjects = /^\s*(so|of|who|whoever|that|to be)\b/i

/**
 * Counts warning signs in this repository: long functions, tiny files, import cycles, SQL outside
 * its folders, private words. Reads only the files that git knows. No count is a goal.
 */
export async function house(): Promise<void> {
  const files = sourceFiles()
  const code = files.filter(({ path }) => !path.startsWith('test/'))
  // Leaves out migrations, because a released migration never changes, and is a list of statements.
  const functions = code.filter(({ path }) => !path.startsWith('migrations/')).flatMap((file) => functionsIn(file))
  const long = functions.filter(({ lines }) => lines > 70)
  const wide = functions.filter(({ parameters }) => parameters > 5)
  const importers = countImporters(files)
  // Leaves out migrations, because a migration is always a separate file.
  const isDust = ({ path, text }: SourceText) =>
    lineCount(text) < 40 && importers.get(path)?.size === 1 && !path.startsWith('migrations/')
  const count = (pattern: RegExp) => code.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0)
  const rows: [string, number | string][] = [
    ['functions over 70 lines', long.length],
    ['functions with more than 5 positional parameters', wide.length],
    ['files that git knows', gitFiles().length],
    ...['cli', 'api', 'effects', 'db', 'mesh', 'safety', 'web'].map((folder): [string, string] => {
      const lines = code.filter(({ path }) => path.startsWith(`${folder}/`)).map(({ text }) => lineCount(text))
      return [`${folder}/: files, median lines`, `${lines.length}, ${median(lines)}`]
    }),
    ['files over 300 lines', code.filter(({ text }) => lineCount(text) > 300).length],
    ['files under 40 lines with one importer', code.filter(isDust).length],
    ['comment lines with words of the list', code.flatMap(commentsWith(folksyWords)).length],
    ['comment lines that cite what is not here', code.flatMap(commentsWith(foreignReferences)).length],
    ['comments that begin with so, of, who, that, to be', code.flatMap(openingsWith(lateSubjects)).length],
    ['import cycles with values', cycles(code).length],
    ['statements of SQL outside db/ and migrations/', code.flatMap(sqlOutside).length],
    ['`as never`', count(/\bas never\b/g)],
    ['object literals spread for their format', count(/\.\.\.\{/g)],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  for (const [name, value] of rows) console.log(`${name.padEnd(width)}  ${String(value).padStart(9)}`)
  if (process.env.NAMES !== '1')
    return void console.log('\nNAMES=1 names them; --since v0.2.0 shows what rose and fell.')
  for (const { name, path, line, lines, parameters } of [...new Set([...long, ...wide])])
    console.log(`${path}:${line} ${name}: ${lines} lines, ${parameters} parameters`)
  for (const cycle of cycles(code)) console.log(`cycle: ${cycle.join(' → ')}`)
  for (const place of code.flatMap(sqlOutside)) console.log(`SQL: ${place}`)
  for (const place of code.flatMap(commentsWith(folksyWords))) console.log(`word: ${place}`)
  for (const place of code.flatMap(commentsWith(foreignReferences))) console.log(`cites: ${place}`)
  for (const place of code.flatMap(openingsWith(lateSubjects))) console.log(`begins: ${place}`)
  for (const { path } of code.filter(isDust)) console.log(`dust: ${path}`)
}

/**
 * Lists the comments that begin with one of the words, with their places. Checks only the first
 * line of a comment, because further lines begin within a sentence.
 */
const openingsWith =
  (words: RegExp) =>
  ({ path, text }: SourceText): string[] => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const said = /^\s*(?:\/\/|\/\*\*?|\*)\s?(.*)$/.exec(line)?.[1] ?? ''
      const before = lines[at - 1] ?? ''
      const goesOn = /^\s*(\/\/|\*(?!\/))/.test(before) && !/^\s*\*\s*$/.test(before)
      return said !== '' && !goesOn && words.test(said) ? [`${path}:${at + 1} ${line.trim()}`] : []
    })
  }

export type SourceText = { path: string; text: string }
type FunctionSize = { path: string; name: string; line: number; lines: number; parameters: number }

function gitFiles(): string[] {
  return execFileSync('git', ['ls-files'], { encoding: 'utf8' }).trim().split('\n')
}

export const isSource = (path: string): boolean => /\.tsx?$/.test(path) && !path.endsWith('.d.ts')

export function sourceFiles(): SourceText[] {
  return gitFiles()
    .filter(isSource)
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
}

type Node = { type: string; loc?: { start: { line: number }; end: { line: number } } | null; [key: string]: unknown }

/**
 * Lists functions with a body. A function without a name has the name of its assignment. Callbacks
 * of tests are left out.
 */
export function functionsIn({ path, text }: SourceText): FunctionSize[] {
  const found: FunctionSize[] = []
  const visit = (node: Node, name: string) => {
    if (
      /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ObjectMethod|ClassMethod)$/.test(node.type) &&
      node.loc
    ) {
      const own =
        (node.id as { name?: string } | null)?.name ?? (node.key as { name?: string } | undefined)?.name ?? name
      const { start, end } = node.loc
      found.push({
        path,
        name: own,
        line: start.line,
        lines: end.line - start.line + 1,
        parameters: (node.params as unknown[]).length,
      })
    }
    const named =
      (node.id as { name?: string } | null | undefined)?.name ??
      (node.key as { name?: string } | undefined)?.name ??
      name
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value])
        if (child && typeof (child as Node).type === 'string') visit(child as Node, named)
  }
  visit(parse(text, { sourceType: 'module', plugins: ['typescript', 'jsx'] }).program as unknown as Node, path)
  return found
}

type Import = { from: string; to: string; isType: boolean }

function importsOf({ path, text }: SourceText): Import[] {
  return [...text.matchAll(/^(?:import|export)\s+(type\s)?([^;'"]*?from\s+)?'(\.[^']+)'/gm)].map(
    ([, type, names, to]) => ({
      from: path,
      to: normalize(join(dirname(path), to!)),
      isType: type !== undefined || (names !== undefined && /^\{\s*(type\s+\w+(\s+as\s+\w+)?,?\s*)+\}/.test(names)),
    }),
  )
}

function countImporters(files: SourceText[]): Map<string, Set<string>> {
  const importers = new Map<string, Set<string>>()
  for (const { from, to } of files.filter(({ path }) => !path.startsWith('test/')).flatMap(importsOf))
    importers.set(to, (importers.get(to) ?? new Set()).add(from))
  return importers
}

/**
 * Finds cycles over imports of values. A cycle is a strongly connected set of files (Tarjan), as a
 * list.
 */
function cycles(code: SourceText[]): string[][] {
  const edges = new Map(
    code.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ isType }) => !isType)
        .map(({ to }) => to),
    ]),
  )
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (path: string) => {
    index.set(path, index.size)
    low.set(path, index.get(path)!)
    stack.push(path)
    for (const to of edges.get(path) ?? []) {
      if (!index.has(to)) visit(to)
      if (stack.includes(to)) low.set(path, Math.min(low.get(path)!, low.get(to)!))
    }
    if (low.get(path) !== index.get(path)) return
    const group = stack.splice(stack.indexOf(path))
    if (group.length > 1) found.push(group)
  }
  for (const { path } of code) if (!index.has(path)) visit(path)
  return found
}

function sqlOutside({ path, text }: SourceText): string[] {
  if (/^(db|migrations|bench)\//.test(path)) return []
  return text
    .split('\n')
    .flatMap((line, at) =>
      /\.(selectFrom|insertInto|updateTable|deleteFrom)\(|\bsql(<[^>]*>)?`/.test(line) ? [`${path}:${at + 1}`] : [],
    )
}

const commentsWith = (words: RegExp) => (file: SourceText) =>
  file.path.startsWith('bench/house') ? [] : findWords(words, file)

export const lineCount = (text: string): number => text.split('\n').length - 1

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0
}
