import { z } from 'zod'
import type { Given } from './process.ts'
import { flag, url } from './process.ts'

/** The agent and the model it asks. */
export const agent = z.object({
  AGENT_ENABLED: flag.default(false),
  AGENT_MAX_CONCURRENT: z.coerce.number().int().min(1).max(100).default(3),
  AGENT_FOLLOWER_CONCURRENT: z.coerce.number().int().min(1).max(100).default(5),
  AGENT_API_KEY: z.string().optional(),
  LLM_BASE_URL: url.optional(),
  LLM_API_KEY: z.string().default(''),
  LLM_MODEL: z.string().min(1).default('Qwen/Qwen2.5-72B-Instruct'),
  LLM_MAX_TURNS: z.coerce.number().int().min(1).max(200).default(10),
  LLM_PROTOCOL: z.enum(['native', 'json']).default('native'),
  LLM_TEMPERATURE: z.coerce.number().min(0).max(2).default(0.1),
  LLM_MAX_TOKENS: z.coerce.number().int().min(64).max(32_768).default(1_024),
  LLM_CONTEXT_TOKENS: z.coerce.number().int().min(2_048).max(2_000_000).optional(),
  LLM_TIMEOUT_SECONDS: z.coerce.number().min(1).max(330).default(300),
  LLM_MAX_CONCURRENT: z.coerce.number().int().min(1).max(1_000).default(16),
  LLM_REQUESTS_PER_SECOND: z.coerce.number().min(0.1).max(1_000).default(20),
})

/** An agent that is on takes a model and a token. */
export function agentProblems(given: Given): string[] {
  if (!agent.shape.AGENT_ENABLED.safeParse(given.AGENT_ENABLED).data) return []
  const problems: string[] = []
  if (!given.LLM_BASE_URL) {
    problems.push('LLM_BASE_URL is required when AGENT_ENABLED is true: the base URL of an OpenAI-compatible server')
  }
  if (!given.AGENT_API_KEY) {
    problems.push('AGENT_API_KEY is required when AGENT_ENABLED is true: a token of role agent')
  }
  return problems
}

/** Of the defaults that `platform_config` falls back to, those that somebody really set in the environment. */
export function givenDefaults(
  environment: Record<string, string | undefined> = process.env,
): Record<'AGENT_MAX_CONCURRENT' | 'AGENT_FOLLOWER_CONCURRENT' | 'LLM_MAX_TURNS', string | undefined> {
  const { AGENT_MAX_CONCURRENT, AGENT_FOLLOWER_CONCURRENT, LLM_MAX_TURNS } = environment
  return {
    AGENT_MAX_CONCURRENT: AGENT_MAX_CONCURRENT || undefined,
    AGENT_FOLLOWER_CONCURRENT: AGENT_FOLLOWER_CONCURRENT || undefined,
    LLM_MAX_TURNS: LLM_MAX_TURNS || undefined,
  }
}
