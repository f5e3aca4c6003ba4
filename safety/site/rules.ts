import { explainSiteRule, meetsDemand, nameSiteRule, type SiteDecision } from '../../domain/site-decision.ts'
import { ask, type Judging, type RuleAnswer, refuse, run } from '../ruling.ts'
import { mayRunBySite } from './compile.ts'

/**
 * The site's policy among the kernel's rules. It narrows anything: its refusals stand after the
 * kernel's and before what people allowed, its questions before all that runs unasked. It widens in
 * one rule, the last before a question.
 */
function decisionOf({ effect, policy: { site } }: Judging): SiteDecision | null {
  if (!site) return null
  if (effect === 'write') return site.write
  return effect === 'read' || effect === 'resolve' ? site.look : null
}

/** No look that the site refuses. */
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

/** For an approved call: the policy wants more people by now, or other ones. */
export function siteAsksMore(judging: Judging): RuleAnswer | null {
  const { approval } = judging.policy
  const { demand } = decisionOf(judging) ?? {}
  return demand && !meetsDemand(approval?.site, demand) ? siteAsks(judging) : null
}

export function siteAsks(judging: Judging): RuleAnswer | null {
  const site = decisionOf(judging)
  return site?.action === 'ask' ? ask('SITE_ASKS', explainSiteRule(site, 'wants people asked')) : null
}

/**
 * The one place where a site widens: a question becomes a run. Never for a person's own write,
 * where place or setting want more, where a host is taken for dead, or for a thing that the rule
 * does not name.
 */
export function siteRuns(judging: Judging): RuleAnswer | null {
  const { call, facts, resolved, policy } = judging
  const site = decisionOf(judging)
  if (site?.action !== 'run' || !site.isNamed || policy.manual || policy.raised.required > 1) return null
  const preparation = call.prepared?.ok ? call.prepared.preparation : null
  if (!preparation || preparation.asks || (preparation.deaths?.length ?? 0) > 0) return null
  if (!mayRunBySite(facts) || resolved.command) return null
  return run('SITE_RUNS', `${nameSiteRule(site)} lets it run`)
}

/** The rule that decided, or that says who is asked: row and card name it. */
export function siteOf(judging: Judging, { verdict, code }: RuleAnswer): { site?: SiteDecision } {
  const site = decisionOf(judging)
  const hasDecided = code === 'SITE_NEVER' || code === 'SITE_RUNS' || (verdict === 'ask' && site?.action === 'ask')
  return site && hasDecided ? { site } : {}
}
