import type { ReactNode } from 'react'
import { Inert } from '../inert.tsx'
import { Sign } from '../marks.tsx'

/** A question that the card answers, under its name. */
export function CardPart({ title, className, children }: { title: string; className?: string; children: ReactNode }) {
  return (
    <section className={className}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** A sentence not to be overlooked: by shape and word, as red is for what is broken now. */
export function Warning({ text }: { text: string }) {
  return (
    <p className="warning">
      <Sign shape="triangle" /> <Inert text={text} />
    </p>
  )
}
