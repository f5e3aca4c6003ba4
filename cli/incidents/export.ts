import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { parseOneOf } from '../one-of.ts'
import { printNote } from '../terminal.ts'

type ExportOptions = ConnectionOptions & { format: string; output?: string }

export function addExportCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('export')
      .description('the incident as a file: json, csv, or md, a postmortem')
      .argument('<id>', 'as inc_…')
      .option('--format <format>', 'json, csv or md', parseOneOf(['json', 'csv', 'md']), 'md')
      .option('-o, --output <file>', 'where to; stdout when absent'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents export inc_01k… --format md -o postmortem.md')
    .action(async (id: string, options: ExportOptions) => {
      const { api } = connect(options)
      const format = options.json ? 'json' : options.format
      const response = await api.open(`/api/v1/incidents/${encodeURIComponent(id)}/export?format=${format}`)
      if (options.output && response.body) {
        await pipeline(Readable.fromWeb(response.body), createWriteStream(options.output))
        return printNote(`Written to ${options.output}.`)
      }
      const text = await response.text()
      // A file gets the bytes as they are; a terminal must not act on them.
      process.stdout.write(process.stdout.isTTY ? inert(text, { lines: true }) : text)
    })
}
