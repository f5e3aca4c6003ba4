import { execFileSync } from 'node:child_process'
import { functionsIn, isSource, lineCount, type SourceText, sourceFiles } from './house.ts'

type Measures = { lines: number; files: number; exports: number; longest: number }
const columns = ['lines', 'files', 'exports', 'longest'] as const

/**
 * Prints the changes since a commit by folder: lines, files, exported names, and the lines of the
 * longest function.
 */
export function printChanges(since: string): void {
  const [before, now] = [byFolder(filesAt(since)), byFolder(sourceFiles())]
  const folders = [...new Set([...before.keys(), ...now.keys()])].sort()
  const nothing: Measures = { lines: 0, files: 0, exports: 0, longest: 0 }
  console.log(`since ${since}`)
  console.log(['folder'.padEnd(12), ...columns.map((name) => name.padStart(18))].join(''))
  for (const folder of folders) {
    const [was, is] = [before.get(folder) ?? nothing, now.get(folder) ?? nothing]
    console.log([folder.padEnd(12), ...columns.map((name) => change(was[name], is[name]).padStart(18))].join(''))
  }
}

/**
 * Formats a number and its change, for example `1,204 ↑ 32`, or only the number if it did not
 * change.
 */
function change(was: number, is: number): string {
  const written = is.toLocaleString('en')
  if (was === is) return written
  return `${written} ${is > was ? '↑' : '↓'} ${Math.abs(is - was).toLocaleString('en')}`
}

function byFolder(files: SourceText[]): Map<string, Measures> {
  const measured = new Map<string, Measures>()
  for (const [folder = '', inside = []] of Map.groupBy(files, ({ path }) => path.split('/')[0])) {
    measured.set(folder, {
      lines: inside.reduce((sum, { text }) => sum + lineCount(text), 0),
      files: inside.length,
      exports: inside.reduce((sum, { text }) => sum + exportsIn(text), 0),
      longest: Math.max(...inside.flatMap(functionsIn).map(({ lines }) => lines), 0),
    })
  }
  return measured
}

function exportsIn(text: string): number {
  const declared =
    text.match(/^export (?:default |async |abstract )*(?:const|let|function|class|type|interface)\b/gm) ?? []
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names.split(',').filter((name) => name.trim() !== ''),
  )
  return declared.length + listed.length
}

/** Reads all files of a commit at once. */
function filesAt(commit: string): SourceText[] {
  const git = (args: string[], input = '') =>
    execFileSync('git', args, { input, maxBuffer: 1 << 30, stdio: ['pipe', 'pipe', 'inherit'] })
  const paths = git(['ls-tree', '-r', '--name-only', commit]).toString().trim().split('\n').filter(isSource)
  const answer = git(['cat-file', '--batch'], paths.map((path) => `${commit}:${path}\n`).join(''))
  const files: SourceText[] = []
  let at = 0
  for (const path of paths) {
    // Reads what Git prints: a line about the file with its size, the file's bytes, and a line end.
    const begin = answer.indexOf(10, at) + 1
    const bytes = Number(answer.subarray(at, begin).toString().trim().split(' ')[2])
    files.push({ path, text: answer.subarray(begin, begin + bytes).toString() })
    at = begin + bytes + 1
  }
  return files
}
