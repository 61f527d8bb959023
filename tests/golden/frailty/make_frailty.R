# Writes frailty.json: coxph with frailty terms, and coxme. Run in this folder.
suppressMessages({library(survival);library(coxme)})
source("../json.R")
tight<-coxph.control(eps=1e-13,iter.max=200,outer.max=100,toler.chol=1e-15)
both<-function(f,p){ # of the p covariates, which come first; frailties are NULL where sparse
  x<-seq_len(p); sparse<-!is.null(f$frail)
  w<-if(sparse) f$frail else unname(f$coefficients[-x])
  h<-f$history[[1]]
  theta<-if(is.null(h$history)) h$theta else h$history[nrow(h$history),1]
  list(coef=unname(f$coefficients[x]),var=unname(f$var[x,x,drop=FALSE]),var2=unname(f$var2[x,x,drop=FALSE]),
    frail=w,fvar=if(sparse) f$fvar else unname(diag(f$var)[-x]),theta=unname(theta),
    c_loglik=if(is.null(h$c.loglik)) NA else unname(h$c.loglik),loglik=f$loglik,penalty=unname(f$penalty[2]),df=unname(f$df))
}
mixed<-function(f) list(coef=unname(fixef(f)),var=unname(as.matrix(vcov(f))),frail=unname(ranef(f)[[1]]),
  theta=unname(VarCorr(f)[[1]][1]),loglik=unname(f$loglik))
# Every way that R has, of one right-hand side without frailties.
ways<-function(data,left,right,id,ties){
  p<-length(attr(terms(as.formula(paste("~",right))),"term.labels"))-length(grep("strata",right))
  g<-function(term) both(eval(bquote(coxph(.(as.formula(paste(left,"~",right,"+",term))),data,ties=ties,control=tight))),p)
  f<-function(more) sprintf("frailty(%s,%s)",id,more)
  plain<-coxph(as.formula(paste(left,"~",right)),data,ties=ties,control=tight)
  out<-list(plain=list(coef=unname(coef(plain)),loglik=plain$loglik),
    gamma_fixed=g(f('dist="gamma",theta=0.4,sparse=FALSE')),gamma_fixed_sparse=g(f('dist="gamma",theta=0.4,sparse=TRUE')),
    gamma=g(f('dist="gamma",eps=1e-13,sparse=FALSE')),
    gaussian_fixed=g(f('dist="gaussian",theta=0.4,sparse=FALSE')),
    gaussian_fixed_sparse=g(f('dist="gaussian",theta=0.4,sparse=TRUE')),
    gaussian_reml=g(f('dist="gaussian",eps=1e-10,sparse=FALSE')))
  mixed_right<-paste(left,"~",right,"+ (1 |",id,")")
  control<-coxme.control(eps=1e-13,toler.chol=1e-15,iter.max=100,inner.iter=quote(20),sparse=c(1000,0.001),optpar=list(method="BFGS",control=list(reltol=1e-14)))
  m<-function(...) mixed(coxme(as.formula(mixed_right),data,ties=ties,control=control,...))
  c(out,list(coxme_fixed=m(vfixed=list(0.4)),coxme=m()))
}
kidney$female<-as.numeric(kidney$sex==2)
kidney$pkd<-as.numeric(kidney$disease=="PKD")
rat<-rats; rat$female<-as.numeric(rat$sex=="f")
lu<-na.omit(lung[,c("time","status","age","sex","ph.ecog","inst")]); lu$status<-lu$status-1; names(lu)[5]<-"ecog"
set.seed(42)
n<-300; site<-rep(1:30,each=10); sim<-data.frame(site=site,x=round(rnorm(n),3),z=rbinom(n,1,0.4),group=rbinom(n,1,0.5))
u<-rgamma(30,2,2)
# Whole times: coxme does not round times that differ by rounding, as coxph does.
sim$time<-5*ceiling(20*rexp(n,u[site]*exp(0.6*sim$x-0.4*sim$z)))
sim$status<-as.numeric(sim$time<200); sim$time<-pmin(sim$time,200)
sim$entry<-pmax(0,sim$time-round(runif(n,20,200)))
out<-list(versions=list(R=paste(R.version$major,R.version$minor,sep="."),survival=as.character(packageVersion("survival")),
    coxme=as.character(packageVersion("coxme"))),
  kidney_data=as.list(kidney[,c("id","time","status","age","female","pkd")]),
  rats_data=as.list(rat[,c("litter","time","status","rx","female")]),
  lung_data=as.list(lu),sim_data=as.list(sim))
for(ties in c("breslow","efron")){
  out[[paste0("kidney_",ties)]]<-ways(kidney,"Surv(time,status)","age+female+pkd","id",ties)
  out[[paste0("rats_",ties)]]<-ways(rat,"Surv(time,status)","rx+female","litter",ties)
  out[[paste0("lung_",ties)]]<-ways(lu,"Surv(time,status)","age+sex+ecog","inst",ties)
  out[[paste0("sim_",ties)]]<-ways(sim,"Surv(time,status)","x+z","site",ties)
  out[[paste0("strata_",ties)]]<-ways(sim,"Surv(time,status)","x+z+strata(group)","site",ties)
  out[[paste0("late_",ties)]]<-ways(sim,"Surv(entry,time,status)","x+z","site",ties)
}
write(json(out),"frailty.json")
