/**
 * Commands that would need approval, each with a tool of the device that gives the same information
 * without approval. A row names what the tool accepts; a command that asks for more matches no row.
 */

type FreeTool = { tool: string; arguments: Record<string, unknown> }

type Asked = { argv: readonly string[]; cwd: string | null }

/**
 * Finds the tool that returns what this command asks for; null if no tool does, or the command asks
 * for more.
 */
export function findFreeTool(asked: Asked): FreeTool | null {
  const [program = '', ...words] = asked.argv
  const name = program.slice(program.lastIndexOf('/') + 1)
  if (name === 'git') return gitTool(words, asked.cwd)
  if (name === 'grep' || name === 'egrep' || name === 'fgrep') return logTool(words)
  return name === 'stat' || name === 'ls' || name === 'file' ? statTool(words) : null
}

const isAbsolute = (word: string | null): word is string => word !== null && /^\/[^*?[\]{}]*$/.test(word)

/** Options that `git_show` and `git_log` apply themselves. */
const ofPatches = /^(?:-p|-u|--patch|--stat|--no-color|--no-ext-diff|--no-textconv)$/
const beforeCommand = /^(?:-P|--no-pager|--no-optional-locks)$/
const revision = /^(?!-)[\w./~^@{}-]{1,200}$/
const ofCount = /^(?:-n ?\d+|-\d+|--max-count=\d+)$/

function gitTool(words: readonly string[], cwd: string | null): FreeTool | null {
  let path = cwd
  let at = 0
  for (; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (word === '-C') {
      at += 1
      path = words[at] ?? null
    } else if (!beforeCommand.test(word)) break
  }
  const [command, ...rest] = words.slice(at)
  if (!isAbsolute(path)) return null
  const given = rest.filter((word) => !ofPatches.test(word))
  if (command === 'show' && given.length <= 1 && given.every((word) => revision.test(word)))
    return { tool: 'git_show', arguments: { path, revision: given[0] ?? 'HEAD' } }
  if (command === 'log' && given.every((word, index) => ofCount.test(word) || isCount(given, index)))
    return { tool: 'git_log', arguments: { path } }
  return null
}

/** Whether the argument at `at` is a part of `-n 5`. */
const isCount = (words: readonly string[], at: number): boolean =>
  (words[at] === '-n' && /^\d+$/.test(words[at + 1] ?? '')) || (words[at - 1] === '-n' && /^\d+$/.test(words[at] ?? ''))

/**
 * Options of grep that change how lines are shown, but not which lines. Options that read
 * everything below a directory are excluded.
 */
const ofShowing = /^-[aHhInrRsi]+$|^--(?:color|colour)(?:=\w+)?$|^-[ABCm]\d+$/
const isLog = /(?:^|\/)(?:[\w.-]*logs?)(?:\/|$)|\.log(?:\.\d+)?$/i
/** Matches a text that as a pattern means only itself. */
const plainText = /^[^.*+?^$()[\]{}|\\]{1,200}$/

function logTool(words: readonly string[]): FreeTool | null {
  const operands: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (/^-[ABCm]$/.test(word)) at += 1
    else if (word.startsWith('-') && !ofShowing.test(word)) return null
    else if (!word.startsWith('-')) operands.push(word)
  }
  const [text = '', path = null, ...more] = operands
  if (more.length > 0 || !isAbsolute(path) || !isLog.test(path)) return null
  return { tool: 'search_logs', arguments: { path, ...(plainText.test(text) && { contains: [text] }) } }
}

function statTool(words: readonly string[]): FreeTool | null {
  const [path = null, ...more] = words.filter((word) => !/^-[a-zA-Z]+$/.test(word))
  return more.length === 0 && isAbsolute(path) ? { tool: 'fs_stat', arguments: { path } } : null
}
