import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import { readPrompts, renderSystemPrompt } from '../prompts/render.ts'
import { describedTools } from '../tools/registry.ts'
import { report } from './report.ts'

/** Bytes of prompt and tool definitions that every first turn sends. */
export async function prompt(): Promise<void> {
  const prompts = readPrompts()
  const described = describedTools(null)
  const tools = Buffer.byteLength(JSON.stringify(describeTools(described)))
  const native = Buffer.byteLength(renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '' }))
  const json = Buffer.byteLength(
    renderSystemPrompt(prompts, { override: null, protocol: 'json', toolsText: describeToolsAsText(described) }),
  )
  report('prompt', {
    'tools offered': described.length,
    'system prompt, native (bytes)': native,
    'tool definitions, native (bytes)': tools,
    'first turn, native (bytes)': native + tools,
    'first turn, json (bytes)': json,
  })
}
