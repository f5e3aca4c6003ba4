import type { CommandAnalysis, RootRead } from './analysis.ts'
import type { Simple, Tree, Word } from './parse.ts'
import type { Unwrapped } from './unwrapped.ts'

/**
 * `sudo -n` and a command that the manifest of a device names word for word. The executor runs it by itself, without a shell and outside of
 * the sandbox, which no set-user-ID program works in; what it prints goes to the rest of the pipe, which stays inside.
 */

/** The commands that may look as root there, as JSON of their words. Where a relative word would lead elsewhere than from `/`, none may. */
export function rootReadsAt(context: {
  rootReads?: readonly (readonly string[])[]
  directory?: string
}): ReadonlySet<string> {
  const isAtRoot = context.directory === undefined || context.directory === '/'
  return new Set(isAtRoot ? context.rootReads?.map((words) => JSON.stringify(words)) : [])
}

/** `sudo -n` of a command that the manifest allows word for word: what is inside is judged as any other. */
export function rootReadOf(
  words: readonly Word[],
  { inner, assignments, askReason }: Unwrapped,
  rootReads: ReadonlySet<string>,
): RootRead | null {
  const [only, another] = inner
  if (rootReads.size === 0 || another || only?.kind !== 'argv' || askReason || assignments.length > 0) return null
  const before = only.before.map(({ text }) => text)
  if (before.length !== 2 || before[0] !== 'sudo' || before[1] !== '-n') return null
  if (!words.every(({ literal }) => literal)) return null
  const argv = only.words.map(({ text }) => text)
  return rootReads.has(JSON.stringify(argv)) ? { argv, rest: null } : null
}

/**
 * The first command of a text that is one pipe of simple commands and nothing else, with what stands behind its bar; null where anything
 * else stands in the text.
 */
export function firstOfPipe(text: string, tree: Tree): { simple: Simple; rest: string | null } | null {
  const [pipeline, another] = tree.pipelines
  const simple = pipeline?.[0]
  if (!pipeline || !simple || another || tree.nested.length > 0 || tree.shapes.length > 0 || tree.error) return null
  const isBare = simple.assignments.length === 0 && simple.redirections.length === 0 && simple.input === null
  if (!isBare || simple.isInside || text.slice(0, simple.start).trim() !== '') return null
  const after = text.slice(simple.end).trim()
  if (pipeline.length === 1) return after === '' ? { simple, rest: null } : null
  const rest = /^\|(?![|&])\s*(\S.*)$/s.exec(after)?.[1]
  return rest === undefined ? null : { simple, rest }
}

/**
 * What looks as root runs by itself, outside of the sandbox and without a shell: the rest of the text shares nothing with it. What it needs
 * besides its words, nobody could give it.
 */
export function setRootReadApart(analysis: CommandAnalysis): void {
  if (!analysis.rootRead) return
  if (analysis.conditions.length > 0 || Object.keys(analysis.environment).length > 0) {
    const reason = 'needs more than its words, which root does not give it'
    analysis.findings.push({ code: 'ROOT', reason, token: analysis.rootRead.argv[0] ?? null })
  }
  analysis.programs = []
  analysis.commands.clear()
}
