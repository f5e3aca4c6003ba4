/** The most processes in a table, as in `proc_list` without a limit. */
const maxProcesses = 50
const maxLineCharacters = 300

/**
 * Limits the table of `ps` like `proc_list`: the busiest processes first, kernel threads last, long
 * lines cut. Null for another program, and for a short table.
 */
export function boundProcessTable(argv: readonly string[], stdout: string): string | null {
  if (!/^(?:.*\/)?ps$/.test(argv[0] ?? '')) return null
  const [header = '', ...rows] = stdout.replace(/\n$/, '').split('\n')
  if (rows.length <= maxProcesses || !/\bPID\b/.test(header)) return null
  // Keeps the order of the rows if the call requested an order or a tree.
  const isOrdered = argv.slice(1).some((word) => ordering.test(word))
  const ranked = isOrdered ? rows : rank(header, rows)
  const kept = ranked.slice(0, maxProcesses).map(cutLine)
  const order = isOrdered ? 'the first of them' : 'those that use the most CPU'
  const left = `[… ${rows.length - maxProcesses} more of ${rows.length} processes are left out; the shown ones are ${order}: call proc_list with a name or a port]`
  return [cutLine(header), ...kept, left, ''].join('\n')
}

/**
 * Options of `ps`: `f` without a dash, `-H` and `--forest` draw a tree; `k`, `O` and `--sort` order
 * it.
 */
const ordering = /^(?:--sort|--forest|-[a-zA-Z]*[HO]|[a-zA-Z]*[fkO])/

function rank(header: string, rows: readonly string[]): string[] {
  const columns = header.trim().split(/\s+/)
  const at = columns.findIndex((name) => name === '%CPU' || name === 'C')
  const share = (row: string) => (at < 0 ? 0 : Number(row.trim().split(/\s+/)[at] ?? 0) || 0)
  const isKernel = (row: string) => Number(/\s\[[^\]]+\]$/.test(row))
  // Relies on the stable sort, which keeps the order of equal rows.
  return [...rows].sort((a, b) => isKernel(a) - isKernel(b) || share(b) - share(a))
}

const cutLine = (line: string): string =>
  line.length <= maxLineCharacters ? line : `${line.slice(0, maxLineCharacters - 1).toWellFormed()}…`
