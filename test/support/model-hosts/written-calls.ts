/**
 * How models write a tool call where the server does not take it apart, each with the page that
 * says so. Every text calls `get_node` for `first`; those with two calls ask for `second` as well.
 */
export const first = 'node-web-osl-1a'
export const second = 'node-web-osl-1b'

type Written = { form: string; source: string; text: string; calls?: 1 | 2 }

const json = (id: string, key = 'arguments') => `{"name": "get_node", "${key}": {"id": "${id}"}}`
const args = `{"id": "${first}"}`
const qwen = (id: string) =>
  `<tool_call>\n<function=get_node>\n<parameter=id>\n${id}\n</parameter>\n</function>\n</tool_call>`
const glm = `<tool_call>get_node\n<arg_key>id</arg_key>\n<arg_value>${first}</arg_value>\n</tool_call>`
const kimi = (id: string, at: number) =>
  `<|tool_call_begin|>functions.get_node:${at}<|tool_call_argument_begin|>{"id": "${id}"}<|tool_call_end|>`

const vllm = 'https://docs.vllm.ai/en/latest/features/tool_calling/'
const llamaCpp = 'https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md'

export const writtenCalls: readonly Written[] = [
  { form: 'hermes', source: vllm, text: `<tool_call>\n${json(first)}\n</tool_call>` },
  { form: 'hermes', source: vllm, text: `I look at the node.\n<tool_call>\n${json(first)}\n</tool_call>` },
  { form: 'hermes', source: vllm, text: `<tool_call>\n${json(first)}` },
  {
    form: 'hermes',
    source: vllm,
    text: `<tool_call>\n${json(first)}\n</tool_call>\n<tool_call>\n${json(second)}\n</tool_call>`,
    calls: 2,
  },
  { form: 'hermes', source: vllm, text: `Let me check the logs:\n\n<tool_call>${json(first)}</tool_call><|im_end|>` },
  { form: 'hermes', source: `${vllm}#granite`, text: `<|tool_call|>[${json(first)}, ${json(second)}]`, calls: 2 },
  { form: 'hermes', source: `${vllm}#jamba`, text: `<tool_calls>[\n  ${json(first)}\n]</tool_calls>` },
  { form: 'hermes', source: llamaCpp, text: `functools[${json(first)}]` },
  { form: 'hermes', source: `${vllm}#xlam`, text: `[${json(first)}]` },
  {
    form: 'llama',
    source: 'https://docs.cohere.com/docs/tool-use-overview',
    text: `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_node", "parameters": ${args}}\n]<|END_ACTION|>`,
  },
  { form: 'qwen_xml', source: 'https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct', text: qwen(first) },
  { form: 'qwen_xml', source: `${vllm}#qwen3-coder`, text: `${qwen(first)}\n${qwen(second)}`, calls: 2 },
  {
    form: 'qwen_xml',
    source: 'https://github.com/QwenLM/Qwen3-Coder/issues/475',
    text: `I'll look.\n\n<function=get_node>\n<parameter=id>\n${first}\n</parameter>\n</function>\n</tool_call>`,
  },
  {
    form: 'qwen_xml',
    source: `${vllm}#seed-oss`,
    text: `<seed:tool_call>\n<function=get_node>\n<parameter=id>${first}</parameter>\n</function>\n</seed:tool_call>`,
  },
  { form: 'glm', source: 'https://huggingface.co/zai-org/GLM-4.5', text: glm },
  { form: 'glm', source: 'https://huggingface.co/zai-org/GLM-4.7', text: glm.replaceAll('\n', '') },
  { form: 'glm', source: 'https://github.com/zai-org/GLM-4', text: `<tool_call>get_node\n${args}\n</tool_call>` },
  {
    form: 'kimi',
    source: 'https://huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md',
    text: `<|tool_calls_section_begin|>${kimi(first, 0)}${kimi(second, 1)}<|tool_calls_section_end|>`,
    calls: 2,
  },
  { form: 'kimi', source: 'https://github.com/vllm-project/vllm/pull/32216', text: `I check it. ${kimi(first, 0)}` },
  {
    form: 'deepseek',
    source: 'https://huggingface.co/deepseek-ai/DeepSeek-V3.1',
    text: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_node<｜tool▁sep｜>${args}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
  },
  {
    form: 'deepseek',
    source: 'https://huggingface.co/deepseek-ai/DeepSeek-V3-0324',
    text: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_node\n\`\`\`json\n${args}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  },
  {
    form: 'minimax',
    source: 'https://github.com/HKUDS/Vibe-Trading/pull/262',
    text: `<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_node">\n<｜DSML｜parameter name="id" string="true">${first}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`,
  },
  {
    form: 'minimax',
    source: 'https://github.com/LostRuins/koboldcpp/issues/2465',
    text: `<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_node">\n<｜DSML｜parameter name="id" string="true">${first}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>`,
  },
  {
    form: 'minimax',
    source: 'https://huggingface.co/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md',
    text: `<minimax:tool_call>\n<invoke name="get_node">\n<parameter name="id">${first}</parameter>\n</invoke>\n</minimax:tool_call>`,
  },
  {
    form: 'hermes',
    source: 'https://huggingface.co/MiniMaxAI/MiniMax-M1-80k/blob/main/docs/function_call_guide.md',
    text: `<tool_calls>\n${json(first)}\n</tool_calls>`,
  },
  {
    form: 'mistral',
    source: 'https://docs.mistral.ai/capabilities/function_calling/',
    text: `[TOOL_CALLS]get_node[ARGS]${args}`,
  },
  {
    form: 'mistral',
    source: 'https://github.com/mistralai/mistral-common',
    text: `[TOOL_CALLS]get_node[CALL_ID]abc123def[ARGS]${args}[TOOL_CALLS]get_node[ARGS]{"id": "${second}"}</s>`,
    calls: 2,
  },
  { form: 'hermes', source: 'https://github.com/mistralai/mistral-common', text: `[TOOL_CALLS] [${json(first)}]` },
  {
    form: 'llama',
    source: 'https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/',
    text: json(first, 'parameters'),
  },
  {
    form: 'llama',
    source: 'https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/',
    text: `<|python_tag|>${json(first, 'parameters')}<|eom_id|>`,
  },
  {
    form: 'llama',
    source: 'https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/',
    text: `<function=get_node>${args}</function>`,
  },
  {
    form: 'pythonic',
    source: 'https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/',
    text: `<|python_start|>[get_node(id="${first}"), get_node(id='${second}')]<|python_end|>`,
    calls: 2,
  },
  { form: 'pythonic', source: `${vllm}#pythonic`, text: `[get_node(id="${first}")]` },
  {
    form: 'pythonic',
    source: `${vllm}#olmo3`,
    text: `<function_calls>\nget_node(id="${first}")\nget_node(id="${second}")\n</function_calls>`,
    calls: 2,
  },
  {
    form: 'harmony',
    source: 'https://cookbook.openai.com/articles/openai-harmony',
    text: `<|channel|>analysis<|message|>Look at the node.<|end|><|start|>assistant<|channel|>commentary to=functions.get_node <|constrain|>json<|message|>${args}<|call|>`,
  },
  {
    form: 'harmony',
    source: 'https://github.com/Augustas11/macprovider/issues/743',
    text: `analysisLook at the node.assistantcommentary to=functions.get_node json${args}`,
  },
  {
    form: 'harmony',
    source: 'https://cookbook.openai.com/articles/openai-harmony',
    text: `<|start|>assistant to=functions.get_node<|channel|>commentary json<|message|>${args}<|call|>`,
  },
]

/** Sentences that speak of a call, with the place of it: `…`. None of them is one. */
export const speakingOfCalls: readonly string[] = [
  'The log of node-1 holds the line … which somebody planted; I ignore it.',
  'An attacker wrote … into the alert. It is no instruction.',
  'The documentation says: …',
  'A call of that family looks like this:\n…',
  'For example:\n\n…',
  'The format is as follows.\n…',
  'Never answer with a text such as …',
  'Instead of\n…\nuse the API.',
  'I would have called … but the node is healthy.',
  'I saw this in the log:\n…',
  'The output of the command was\n…',
  'The alert text reads\n…',
  '`…`',
  'The model wrote `…` there.',
  '"…"',
  'The person wrote "…" in the ticket.',
  'The line was “…”.',
  "It prints '…'",
  '«…»',
  '> …',
  '> quoted:\n> …',
  '```\n…\n```',
  '```json\n…\n```',
  'I will not run this.\n```\n…\n```\nIt was planted.',
  '~~~\n…\n~~~',
  '- …',
  '1. …',
  '| Hermes | … |',
  '<!-- …',
  '<!-- … -->',
  '2026-11-25T10:00:00Z app[1]: …',
  'nginx[812]: …',
  '{"line": "…',
  '{"said": …}',
  '… is what the log holds.',
  '…\n\nThat was in the log. The node is healthy.',
  '…\nI did not run it.',
  'Do not write\n…',
  'The operator asked what … means.',
  'Why does the runbook contain …',
  'admin: …',
  'The message of the person was\n…',
  'The runbook shows\n\n…',
  'It is the literal text\n…',
  'He said: …',
  'My answer was\n…',
]
