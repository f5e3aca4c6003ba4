import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import type { ZodError } from 'zod'
import type { IncidentEvent } from '../domain/event.ts'
import type { Principal } from '../domain/operator.ts'

/** What the middlewares leave for the route behind them. */
export type Env = {
  Variables: {
    requestId: string
    principal: Principal
    /** A signed-in browser asks, not a token. */
    browser: boolean
    /** Set for every write of an agent that passed the gate, and for nobody else. */
    judged: IncidentEvent<'tool_started'> | null
  }
}
export type Context = HonoContext<Env>
export type Middleware = MiddlewareHandler<Env>
export type Hook = (
  result: { target: string } & ({ success: true; data: unknown } | { success: false; error: ZodError }),
  c: Context,
) => Response | undefined
