import { type ReactNode, useEffect, useRef, useState } from 'react'
import { tellOffset } from '../domain/told-time.ts'
import { grantsKey } from './approvals/grants.tsx'
import { pendingKey, usePendingApprovals } from './approvals/pending.ts'
import { Brand } from './heading.tsx'
import { KeyHelp } from './keys.tsx'
import { useLive, useLiveState } from './live.tsx'
import { queryClient } from './query-client.ts'
import { Link, usePlace } from './router.tsx'
import { type Session, signOut } from './session.ts'
import { AwayBanner } from './states.tsx'
import { applyTheme, theme, themes } from './theme.ts'
import { chooseZone, useZone, zones } from './time.ts'

const places: [string, string][] = [
  ['/incidents', 'Incidents'],
  ['/approvals', 'Approvals'],
  ['/alerts', 'Alerts'],
  ['/gaps', 'Capability gaps'],
  ['/devices', 'Devices'],
  ['/usage', 'Usage'],
  ['/health', 'Health'],
  ['/config', 'Configuration'],
  ['/audit', 'Audit'],
  ['/people', 'People'],
  ['/tokens', 'Tokens'],
]

const liveWords = { opening: 'Connecting…', live: 'Live', lost: 'Reconnecting…' } as const

/** What is around every page: where one is, what waits, whether the stream runs, who one is. */
export function Shell({ session, children }: { session: Session; children: ReactNode }) {
  const { pathname } = usePlace()
  const { count } = usePendingApprovals()
  const live = useLiveState()
  const times = useZone()
  const at = pathname === '/' ? '/incidents' : pathname
  const nav = useRef<HTMLElement>(null)
  // On a narrow screen the list of pages is one line that scrolls: where one is must be seen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the page that is marked changes with the address
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [pathname])
  useLive((event) => {
    if (!/^(approval_|grant_used|resolved|escalated|cancelled)/.test(event.kind)) return
    void queryClient.invalidateQueries({ queryKey: pendingKey })
    void queryClient.invalidateQueries({ queryKey: ['approval'] })
    void queryClient.invalidateQueries({ queryKey: ['approvals', 'list'] })
    void queryClient.invalidateQueries({ queryKey: grantsKey })
  })
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <Brand />
        <nav aria-label="Pages" ref={nav}>
          <ul>
            {places.map(([path, word]) => (
              <li key={path}>
                <Link href={path} aria-current={at.startsWith(path) ? 'page' : undefined}>
                  {word}
                  {path === '/approvals' && count > 0 && (
                    <span className="count">
                      {count}
                      <span className="visually-hidden"> waiting</span>
                    </span>
                  )}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div className="foot">
          <span className={`live ${live}`} role="status">
            <span>{liveWords[live]}</span>
          </span>
          <ThemeSwitch />
          <ZoneSwitch />
          <KeyHelp />
          <span className="who soft">
            {session.name} · {session.role}
          </span>
          <span className="who">
            <a href="/docs">API</a>
          </span>
          <button type="button" className="bare" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </header>
      {/* Another zone is another text of every time: what is drawn once is drawn again. */}
      <main id="content" key={times}>
        <AwayBanner />
        {children}
      </main>
    </div>
  )
}

function ZoneSwitch() {
  const chosen = useZone()
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Times</legend>
      {zones.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          title={
            each === 'utc' ? 'Times in UTC' : `Times in your own zone, ${tellOffset(new Date().toISOString(), each)}`
          }
          onClick={() => chooseZone(each)}
        >
          {each === 'utc' ? 'UTC' : 'local'}
        </button>
      ))}
    </fieldset>
  )
}

function ThemeSwitch() {
  const [chosen, choose] = useState(theme)
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Colours</legend>
      {themes.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          onClick={() => {
            applyTheme(each)
            choose(each)
          }}
        >
          {each}
        </button>
      ))}
    </fieldset>
  )
}
