import type { RunbookCall } from './facts.ts'

/**
 * Text forms in which ten model families write calls, for servers that do not parse calls.
 * Parameters in markup are texts; lists and numbers in them are written as JSON.
 */
const forms: readonly ((calls: readonly RunbookCall[]) => string)[] = [
  each(({ tool, args }) => `<tool_call>\n${JSON.stringify({ name: tool, arguments: args })}\n</tool_call>`, '\n'),
  each(
    ({ tool, args }) =>
      `<tool_call>\n<function=${tool}>\n${params(args, (key, value) => `<parameter=${key}>\n${value}\n</parameter>`)}\n</function>\n</tool_call>`,
    '\n',
  ),
  each(
    ({ tool, args }) =>
      `<tool_call>${tool}\n${params(args, (key, value) => `<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>`)}\n</tool_call>`,
    '\n',
  ),
  (calls) =>
    `<|tool_calls_section_begin|>${each(({ tool, args }, at) => `<|tool_call_begin|>functions.${tool}:${at}<|tool_call_argument_begin|>${JSON.stringify(args)}<|tool_call_end|>`)(calls)}<|tool_calls_section_end|>`,
  (calls) =>
    `<｜tool▁calls▁begin｜>${each(({ tool, args }) => `<｜tool▁call▁begin｜>${tool}<｜tool▁sep｜>${JSON.stringify(args)}<｜tool▁call▁end｜>`)(calls)}<｜tool▁calls▁end｜>`,
  (calls) =>
    `<minimax:tool_call>\n${each(({ tool, args }) => `<invoke name="${tool}">\n${params(args, (key, value) => `<parameter name="${key}">${value}</parameter>`)}\n</invoke>`, '\n')(calls)}\n</minimax:tool_call>`,
  each(({ tool, args }) => `[TOOL_CALLS]${tool}[ARGS]${JSON.stringify(args)}`),
  (calls) => `<|python_tag|>${each(({ tool, args }) => JSON.stringify({ name: tool, parameters: args }), '\n')(calls)}`,
  each(
    ({ tool, args }) =>
      `<|start|>assistant<|channel|>commentary to=functions.${tool} <|constrain|>json<|message|>${JSON.stringify(args)}<|call|>`,
  ),
  (calls) =>
    `<|python_start|>[${each(({ tool, args }) => `${tool}(${params(args, (key, value) => `${key}=${python(value)}`, ', ')})`, ', ')(calls)}]<|python_end|>`,
]

/**
 * Formats the calls as text. Each turn uses the next form, so that a conversation uses all forms.
 */
export function writeCalls(calls: readonly RunbookCall[], turn: number): string {
  return forms[turn % forms.length]!(calls)
}

function each(write: (call: RunbookCall, at: number) => string, between = '') {
  return (calls: readonly RunbookCall[]) => calls.map(write).join(between)
}

function params(args: object, write: (key: string, value: string) => string, between = '\n'): string {
  return Object.entries(args)
    .map(([key, value]) => write(key, typeof value === 'string' ? value : JSON.stringify(value)))
    .join(between)
}

const python = (value: string): string =>
  /^[[{]|^(?:true|false|null|-?\d+(?:\.\d+)?)$/.test(value) ? value : JSON.stringify(value)
