// Uses the page of ui_app.jsx in Chromium, as a person would.
//
//	node ui_browser.mjs PAGE IBID CHROMIUM VERSION [SHOTS]
//
// SHOTS is a directory for pictures.
import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

const [page_, ibid, executablePath, version, shots] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const context = await browser.newContext()
  const wrong = []
  const tab = async () => {
    const page = await context.newPage()
    page.on('pageerror', e => wrong.push(String(e)))
    page.on('console', m => { if (m.type() === 'error' && !/404|429/.test(m.text())) wrong.push(m.text()) })
    return page
  }
  const page = await tab()
  const name = chat => `${version}-${chat}`
  const open = (provider, chat, on = page) =>
    on.goto(`${page_}/${version}?ibid=${encodeURIComponent(ibid)}&chat=${name(chat)}&provider=${provider}`)
  const ask = async (words, on = page) => {
    await on.fill('input', words)
    await on.press('input', 'Enter')
  }
  const herons = 'How many herons nest at Lake Tonbo?'
  const ready = (on = page) => on.waitForSelector('main[data-status=ready]')
  const final = (n, on = page) => on.waitForFunction(n => document.querySelectorAll('article[data-citations=final]').length === n, n)
  const arriving = (n, on = page) =>
    on.waitForFunction(n => [...document.querySelectorAll('article')].at(n - 1)?.querySelector('p')?.textContent.length > 30, n)
  /** What a reader sees. */
  const seen = async (on = page) => ({
    questions: await on.locator('h2').allTextContents(),
    texts: await on.locator('article p').allTextContents(),
    sources: await on.locator('article li').allTextContents(),
    numbers: await on.locator('article sup').allTextContents(),
    reasoning: await on.locator('article details').allTextContents(),
    calls: await on.locator('article div').allTextContents(),
  })

  await open('slow', 'one')
  await ask(herons)
  await page.waitForSelector('article p')
  const lengths = new Set()
  while (await page.getAttribute('main', 'data-status') === 'streaming') {
    lengths.add((await page.textContent('article p')).length)
    await page.waitForTimeout(30)
  }
  assert.ok(lengths.size > 5, `the text came at once: ${[...lengths]}`)
  await ready()
  await final(1)
  const first = await seen()
  assert.deepEqual(first.numbers, ['1', '2', '1', '3'])
  assert.equal(first.sources.length, 3)
  await page.reload()
  await final(1)
  assert.deepEqual(await seen(), first)
  console.log(`text streams in, ${lengths.size} lengths seen; a reload shows the same`)

  await ask(herons)
  await arriving(2)
  await page.reload()
  await arriving(2)
  assert.deepEqual((await seen()).questions, [herons, herons], 'the question is gone while its answer arrives')
  const second = await tab()
  await open('slow', 'one', second)
  await arriving(2, second)
  for (const on of [page, second]) {
    await final(2, on)
    await ready(on)
  }
  const both = await seen()
  assert.deepEqual(both.texts, [...first.texts, ...first.texts])
  assert.deepEqual(await seen(second), both)
  await page.reload()
  await final(2)
  assert.deepEqual(await seen(), both)
  await second.close()
  console.log('a reload in turn 2, and a second tab, show question and answer, and go on')

  await open('slow', 'two')
  await ask(herons)
  await arriving(1)
  await page.reload()
  await arriving(1)
  assert.deepEqual((await seen()).questions, [herons])
  await final(1)
  await ready()
  assert.deepEqual(await seen(), first)
  console.log('so does a reload in turn 1')

  await open('gemini', 'three')
  await ask('アオサギは何羽いますか？🪿')
  await final(1)
  assert.match((await seen()).texts[0], /四十一あります。\d最初の/)
  console.log('beyond ASCII')

  await open('late', 'four')
  await ask(`${herons} From memory unless you can search.`)
  await final(1)
  await ready()
  const late = await seen()
  assert.ok(late.numbers.length >= 3 && late.sources.length === 3, JSON.stringify(late))
  await page.reload()
  await final(1)
  assert.deepEqual(await seen(), late)
  console.log('late citations are shown, with their sources')

  for (const [provider, call] of [['anthropic', 'web_search'], ['gemini', 'google_search_web'], ['xai']]) {
    const next = () => fetch(`${page_}/next`)
    /** Checks the answer while it streams, and again after a reload. */
    const sees = async what => {
      await page.waitForSelector(what)
      await page.reload()
      await page.waitForSelector(what)
      assert.equal(await page.getAttribute('main', 'data-status'), 'streaming')
      await next()
    }
    await open(`held-${provider}`, provider)
    await ask('What is in the news?')
    await sees('details[open]')
    if (call) await sees(`article div:text-is("${call}: …")`)
    await final(1)
    await ready()
    const whole = await seen()
    assert.ok(whole.reasoning.length > 0 && whole.reasoning.every(text => text.length > 'Reasoning'.length + 20))
    assert.deepEqual(whole.calls, call ? [`${call}: done`] : [])
    assert.equal(await page.locator('details[open]').count(), 0)
    await page.reload()
    await final(1)
    assert.deepEqual(await seen(), whole)
    if (provider === 'gemini') { // it is in turn 2
      await ask('And tomorrow?')
      await sees('details[open]')
      await next()
      await final(2)
      await ready()
      assert.deepEqual((await seen()).questions, ['What is in the news?', 'And tomorrow?'])
      assert.deepEqual((await seen()).texts, [...whole.texts, ...whole.texts])
    }
    if (shots) await page.screenshot({ path: `${shots}/${name(provider)}.png`, fullPage: true })
  }
  console.log('reasoning and calls of tools are shown while they stream, after reloads in the middle, and as they are stored')

  await open('slow', 'five')
  await ask(herons)
  await arriving(1)
  await page.click('button')
  await ready()
  await page.waitForFunction(async path => {
    const messages = await (await fetch(path)).json()
    return messages.length === 2 && messages[1].parts.some(p => p.type === 'text')
  }, `${ibid}/v1/conversations/${name('five')}?as=ui`)
  await page.reload()
  await page.waitForSelector('article p')
  const stopped = await seen()
  assert.ok(stopped.texts[0].length < first.texts[0].length, 'it was not stopped')
  assert.equal(await page.getAttribute('main', 'data-status'), 'ready')
  console.log('what was stopped stays stopped')

  await open('openai', 'six')
  await ask('Please answer with error 429')
  await page.waitForSelector('[role=alert]')
  assert.match(await page.textContent('[role=alert]'), /^Upstream openai answered 429: [^{}]*\.$/)
  await open('openai', 'seven')
  await ask(`${herons} With an error in the stream.`)
  await page.waitForSelector('[role=alert]')
  assert.ok((await seen()).texts[0].length > 20, 'what came before the error is gone')
  assert.ok((await page.textContent('[role=alert]')).length > 0)
  console.log('a refusal and an error in the stream are said in words')

  await page.goto(`${page_}/plain`)
  await ask(herons)
  await page.waitForSelector('#sources li')
  assert.equal(await page.locator('#sources li').count(), 3)
  assert.match(await page.textContent('#text'), /41 nests this year\..*\[1\].*\[3\] Nobody knows/)
  console.log('the page of docs/chat.md works')

  assert.deepEqual(wrong, [])
} finally {
  await browser.close()
}
