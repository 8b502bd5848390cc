// Chromium for the scripts of this directory, with what every page must keep to: no error in the console, nothing refused by its
// policy, nothing asked of anybody else.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

export const desktop = { viewport: { width: 1280, height: 800 } }
/** A window in which sources stand below the text, and not beside it: there chips open cards. */
export const tablet = { viewport: { width: 1000, height: 800 } }
/** What the browser says when it keeps a hostile display of a provider's in its frame. */
export const refused = ['Blocked script execution in', 'violates the following Content Security Policy directive: "img-src data:"']

export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** Starts the browser at a path, runs f with it and ends it. */
export async function withBrowser(executablePath, f) {
  const args = ['--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run']
  if (process.getuid() === 0) args.push('--no-sandbox') // it does not run as root otherwise
  const browser = await chromium.launch({ executablePath, args })
  try {
    return await f(browser)
  } finally {
    await browser.close()
  }
}

/** What went wrong on a context's pages, as words; may says which words are expected. */
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

const idle = new WeakMap() // of each browser: pages that are free again, by their options

/**
 * Runs f with a page and its context, and fails if anything went wrong on it. The page may have shown others before, which is quicker
 * than a new one; with the option fresh it and its context have not.
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

/** Clicks what leads to another page, or to another place of this one, and waits until that is there. */
export const follow = (page, link) => Promise.all([page.waitForNavigation(), link.click()])

/** Waits until nothing on a page moves or fades any more. */
export const settled = page => page.evaluate(() => Promise.all(document.getAnimations({ subtree: true }).map(a => a.finished)))

/** Runs scenarios by name, all of them, and says how each went and how long it took. The last words of the program say how many went wrong. */
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

/** What axe finds on a page, as words: of all rules, or of some. Rows that are not laid out yet would lie over each other. */
export async function axe(page, rules) {
  // By the debugger, which no policy of the page keeps out.
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

/** What reaches over the right side of a page, as words: what makes readers scroll sideways. */
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

/** Reads the world that the test made: JSON, the second word of the command line, after the path of the browser. */
export const told = () => ({ executablePath: process.argv[2], world: JSON.parse(process.argv[3]) })
