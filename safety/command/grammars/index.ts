import type { Grammars } from '../grammar.ts'
import { archives } from './archives.ts'
import { contents } from './contents.ts'
import { files } from './files.ts'
import { text } from './text.ts'

/** What is known of every program, by base name. What is not here is not a read. */
export const grammars: Grammars = { ...archives, ...contents, ...files, ...text }
