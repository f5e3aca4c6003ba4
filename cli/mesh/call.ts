import { type Command, InvalidArgumentError } from 'commander'
import { specNamed } from '../../mesh/registry.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { print, printJson } from '../terminal.ts'

export function addCallCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('call')
      .description('ask a device for one thing; what changes something it does for an approved run alone')
      .argument('<on>', 'the node, host, VM or device')
      .argument('<tool>', 'as fs_read, fs.read, exec')
      .argument('[args]', 'JSON of its arguments', parseObject, {}),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh call node-osl-1 fs.read \'{"path":"/var/log/app.log"}\'\n  nightshift mesh call node-osl-1 exec \'{"argv":["uptime"]}\'',
    )
    .action(async (on: string, tool: string, args: Record<string, unknown>, options: ConnectionOptions) => {
      const spec = specNamed(tool)
      if (!spec) throw new CommandFailed('usage', `There is no device tool ${inert(tool)}.`)
      const { api } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(on)}/calls`
      const answer = (await api.post(path, { capability: spec.capability, args })) as Record<string, unknown>
      if (options.json) return printJson(answer)
      const { stdout, stderr, content, ...rest } = answer
      for (const text of [stdout, stderr, content]) {
        if (typeof text === 'string' && text !== '') print(inert(text, { lines: true }).trimEnd())
      }
      printJson(rest)
    })
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It takes a JSON object.')
}
