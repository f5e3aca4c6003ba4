import { stripVTControlCharacters } from 'node:util'
import Table from 'cli-table3'
import { paint, width } from './terminal.ts'

/**
 * Rows in columns that fit the terminal. The column named by `flexible` gives way and is cut with an ellipsis; all others
 * are as wide as their widest cell. Cells are already inert.
 */
export function table(head: string[], rows: string[][], flexible: number): string {
  const wide = head.map((title, index) =>
    Math.max(title.length, ...rows.map((row) => stripVTControlCharacters(row[index] ?? '').length)),
  )
  const others = wide.reduce((sum, each, index) => sum + (index === flexible ? 0 : each + 2), 0)
  wide[flexible] = Math.max(10, Math.min(wide[flexible] ?? 0, width() - others - 1))
  const drawn = new Table({
    chars: Object.fromEntries(borders.map((name) => [name, ''])),
    style: { 'padding-left': 0, 'padding-right': 1, head: [], border: [] },
    colWidths: wide.map((each) => each + 1),
    colAligns: head.map(() => 'left'),
  })
  drawn.push(
    head.map((title) => paint('dim', title)),
    ...rows,
  )
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

const borders = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
].concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
