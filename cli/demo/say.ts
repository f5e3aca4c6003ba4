import { data, width } from '../terminal.ts'
import { wrap } from '../wrap.ts'

/** A remark between the rows. */
export function say(text: string): void {
  data(`  ${wrap(text, width() - 2, '  ')}`)
}
