// Chromium for the scripts of this directory, with the rules that every page must keep: no errors in the console,
// nothing blocked by its policy, no requests to other hosts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

export const desktop = { viewport: { width: 1280, height: 800 } }
/** A window in which sources are below the text instead of beside it, so that chips open cards. */
export const tablet = { viewport: { width: 1000, height: 800 } }
/** What the browser logs when it confines a provider's hostile display to its frame. */
export const refused = ['Blocked script execution in', 'violates the following Content Security Policy directive: "img-src data:"']

export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** Starts the browser at a path, runs f with it and closes it. */
export async function withBrowser(executablePath, f) {
  const args = ['--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run']
  if (process.getuid() === 0) args.push('--no-sandbox') // required for running as root
  const browser = await chromium.launch({ executablePath, args })
  try {
    return await f(browser)
  } finally {
    await browser.close()
  }
}

/** The problems on a context's pages, as text; may lists the expected ones. */
export function watch(context, base, may = []) {
  const wrong = []
  const note = words => { if (!may.some(m => words.includes(m))) wrong.push(words) }
  const origins = [base].flat().map(b => new URL(b).origin)
  context.on('page', page => {
    page.on('pageerror', e => note(`${page.url()}: error: ${e.message}`))
    page.on('console', m => { if (m.type() === 'error' || m.type() === 'warning') note(`${page.url()}: console: ${m.text()}`) })
    const elsewhere = url => !/^(data|blob|about):/.test(url) && !origins.includes(new URL(url).origin)
    page.on('requestfinished', r => { if (elsewhere(r.url())) note(`${page.url()}: asks ${r.url()}`) })
    page.on('requestfailed', r => {
      if (elsewhere(r.url()) && r.failure()?.errorText !== 'csp') note(`${page.url()}: asks ${r.url()}: ${r.failure()?.errorText}`)
    })
    page.on('dialog', d => { note(`${page.url()}: dialog: ${d.message()}`); d.dismiss() })
  })
  return wrong
}

const idle = new WeakMap() // by browser: pages that can be reused, by their options

/**
 * Runs f with a page and its context, and fails if anything went wrong on it. Pages are reused, which is faster; the option fresh
 * requests a new page and context.
 */
export async function onPage(browser, world, options, f) {
  const { may, fresh, ...rest } = options
  const key = JSON.stringify([rest, may])
  if (!idle.has(browser)) idle.set(browser, new Map())
  const free = fresh ? [] : idle.get(browser).get(key) ?? []
  if (!fresh) idle.get(browser).set(key, free)
  const one = free.pop() ?? await open(browser, world, rest, may)
  try {
    await f(one.page, one.context)
    assert.deepEqual(one.wrong, [])
  } catch (e) {
    await one.context.close()
    throw e
  }
  if (fresh || one.page.isClosed()) return one.context.close()
  for (const other of one.context.pages()) if (other !== one.page) await other.close()
  await one.page.goto('about:blank')
  await one.page.mouse.move(0, 0)
  await one.page.emulateMedia({ media: null, colorScheme: null })
  free.push(one)
}

async function open(browser, world, options, may) {
  const context = await browser.newContext(options)
  const wrong = watch(context, [world.base, world.demo, world.foreign].filter(Boolean), may)
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  return { context, page, wrong }
}

/** Clicks a link to another page, or to another place on this one, and waits until it is shown. */
export const follow = (page, link) => Promise.all([page.waitForNavigation(), link.click()])

/** Waits until all animations on a page have ended. */
export const settled = page => page.evaluate(() => Promise.all(document.getAnimations({ subtree: true }).map(a => a.finished)))

/** Runs all scenarios, and prints the result and duration of each. The program's last output is the number that failed. */
export async function scenarios(all) {
  const only = process.env.PAGE_ONLY
  let failed = 0
  for (const [name, run] of Object.entries(all)) {
    if (only && !name.includes(only)) continue
    const begun = performance.now()
    try {
      await run()
      console.log(`ok: ${name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`)
    } catch (e) {
      failed++
      console.log(`FAILED: ${name}: ${e.stack}`)
    }
  }
  if (failed > 0) {
    console.log(`${failed} failed`)
    process.exitCode = 1
  }
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds on a page, as text, by all rules or some. Rows not laid out yet would overlap. */
export async function axe(page, rules) {
  // Through the debugger, which the page's policy does not restrict.
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axeSource)
  const found = await page.evaluate(rules => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync('* { content-visibility: visible !important; transition: none !important }')
    document.adoptedStyleSheets = [sheet]
    return globalThis.axe.run(document, {
      runOnly: rules ? { type: 'rule', values: rules } : { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
      iframes: false, resultTypes: ['violations'],
    })
  }, rules)
  return found.violations.map(v => {
    const [n] = v.nodes
    return `${v.id}: ${v.nodes.length} like ${n.target.join(' ')}: ${n.any.concat(n.all, n.none).map(c => c.message).slice(0, 2).join('; ')}`
  })
}

/** What overflows a page on the right, as text: it makes readers scroll sideways. */
export const overflow = page => page.evaluate(() => {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  const all = [`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`]
  for (const e of document.body.querySelectorAll('*')) {
    if (e.getBoundingClientRect().right > width + 1 && e.checkVisibility()) all.push(`${e.localName}.${e.className} ${e.id}`)
  }
  return all.slice(0, 6)
})

/** The median of numbers. */
export const median = all => [...all].sort((a, b) => a - b)[all.length >> 1]

/** Reads the test's world: JSON, the second argument, after the browser's path. */
export const told = () => ({ executablePath: process.argv[2], world: JSON.parse(process.argv[3]) })
