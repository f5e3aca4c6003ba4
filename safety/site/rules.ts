import { explainSiteRule, meetsDemand, nameSiteRule, type SiteDecision } from '../../domain/site-decision.ts'
import { ask, type Judging, type RuleAnswer, refuse, run } from '../ruling.ts'
import { mayRunBySite } from './compile.ts'

/**
 * Judges a call by the site's policy, as one of the kernel's rules. The policy may narrow
 * everything: its refusals come after the kernel's and before people's permissions, its demands for
 * approval before everything that runs automatically. The policy allows more in only one rule, the
 * last one before people are asked.
 */
function decisionOf({ effect, policy: { site } }: Judging): SiteDecision | null {
  if (!site) return null
  if (effect === 'write') return site.write
  return effect === 'read' || effect === 'resolve' ? site.look : null
}

/** Refuses reads that the site forbids. */
export function siteForbidsLook(judging: Judging): RuleAnswer | null {
  return judging.effect === 'write' ? null : forbidden(judging)
}

export function siteForbids(judging: Judging): RuleAnswer | null {
  return judging.effect === 'write' ? forbidden(judging) : null
}

function forbidden(judging: Judging): RuleAnswer | null {
  const site = decisionOf(judging)
  if (site?.action !== 'never') return null
  return refuse(
    'SITE_NEVER',
    explainSiteRule(site, 'forbids it'),
    'No approval lifts this. Find another way, or escalate.',
  )
}

/**
 * Returns the request for approval of a call that is already approved, if the policy now demands
 * more or other people. Otherwise null.
 */
export function siteAsksMore(judging: Judging): RuleAnswer | null {
  const { approval } = judging.policy
  const { demand } = decisionOf(judging) ?? {}
  return demand && !meetsDemand(approval?.site, demand) ? siteAsks(judging) : null
}

export function siteAsks(judging: Judging): RuleAnswer | null {
  const site = decisionOf(judging)
  return site?.action === 'ask' ? ask('SITE_ASKS', explainSiteRule(site, 'requires approval')) : null
}

/**
 * Lets a call run that would otherwise need approval. Only this rule lets a site allow more than
 * the kernel. Does not apply to a person's own write, if place or setting require more, if a host
 * counts as dead, or to a resource that the site's rule does not name.
 */
export function siteRuns(judging: Judging): RuleAnswer | null {
  const { call, facts, resolved, policy } = judging
  const site = decisionOf(judging)
  if (site?.action !== 'run' || !site.isNamed || policy.manual || policy.raised.required > 1) return null
  const preparation = call.prepared?.ok ? call.prepared.preparation : null
  if (!preparation || preparation.asks || (preparation.deaths?.length ?? 0) > 0) return null
  if (!mayRunBySite(facts) || resolved.command) return null
  return run('SITE_RUNS', `${nameSiteRule(site)} allows the call`)
}

/**
 * Returns, for the row and the approval card, the site's rule that decided or that names the people
 * who are asked.
 */
export function siteOf(judging: Judging, { verdict, code }: RuleAnswer): { site?: SiteDecision } {
  const site = decisionOf(judging)
  const hasDecided = code === 'SITE_NEVER' || code === 'SITE_RUNS' || (verdict === 'ask' && site?.action === 'ask')
  return site && hasDecided ? { site } : {}
}
