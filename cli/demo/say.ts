import { print, terminalWidth } from '../terminal.ts'
import { wrap } from '../wrap.ts'

/** A remark between the rows. */
export function printRemark(text: string): void {
  print(`  ${wrap(text, terminalWidth() - 2, '  ')}`)
}
